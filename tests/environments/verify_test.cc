#include "environments/verify/verify.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>

#include "base/check.h"
#include "environments/availability.h"
#include "environments/environment.h"
#include "nn/safetensors.h"

namespace weft {
namespace {

const std::string kFixtures = std::string(WEFT_TEST_DATA) + "/environments/";

bool Registered(const std::string& id) {
  return Environments().Find(id) != nullptr;
}

std::string Failures(const VerifyReport& report) {
  std::string text;
  for (const VerifyField& field : report.fields) {
    if (field.failed > 0) text += field.tensor + " ";
  }
  return text + "\n" + ToText(report, true);
}

class Fixture : public testing::TestWithParam<const char*> {};

// Recorded by make_recordings.py with Gymnasium 1.4.0 and minigrid 3.2.0.
TEST_P(Fixture, IsReproduced) {
  const std::string path = kFixtures + GetParam() + ".safetensors";
  SafetensorsMetadata metadata;
  ReadSafetensors(path, &metadata);
  if (!Registered(metadata.at("env"))) GTEST_SKIP() << metadata.at("env") << " needs MuJoCo";
  const VerifyReport report = VerifyEnvironmentFile("", path);
  EXPECT_GT(report.checked, 300);
  EXPECT_EQ(report.failed, 0) << Failures(report);
}
INSTANTIATE_TEST_SUITE_P(Verify, Fixture,
                         testing::Values("acrobot", "blackjack", "cartpole_sutton_barto",
                                         "cliffwalking_slippery", "frozenlake_custom",
                                         "minigrid_doorkey", "minigrid_empty_random",
                                         "minigrid_fourrooms", "minigrid_lavagap",
                                         "minigrid_memory", "minigrid_multiroom", "minigrid_unlock",
                                         "mountaincarcontinuous_f32", "pendulum_f32"),
                         [](const auto& parameter) { return std::string(parameter.param); });
INSTANTIATE_TEST_SUITE_P(VerifyMujoco, Fixture,
                         testing::Values("ant_f32", "halfcheetah_f32", "hopper_f32", "humanoid_f32",
                                         "pusher_f32", "reacher_v4_f32"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST(Verify, FollowsNumPyIntoFloat32) {
  const VerifyReport report =
      VerifyEnvironmentFile("", kFixtures + "mountaincarcontinuous_f32.safetensors");
  for (const VerifyField& field : report.fields) {
    // Float64 arithmetic rounded at the end of a step differs in one of seven states.
    if (field.tensor.starts_with("ep.state")) {
      EXPECT_EQ(field.error, 0) << field.tensor;
    }
  }
}

TEST(Verify, FindsOneWrongNumber) {
  const std::string path = testing::TempDir() + "/wrong.safetensors";
  SafetensorsMetadata metadata;
  TensorMap tensors = ReadSafetensors(kFixtures + "pendulum_f32.safetensors", &metadata);
  tensors.At("ep.reward").data<double>()[7] += 1e-6;
  WriteSafetensors(path, tensors, metadata);
  const VerifyReport report = VerifyEnvironmentFile("", path);
  EXPECT_EQ(report.failed, 1);
  EXPECT_EQ(report.worst.tensor, "ep.reward");
  EXPECT_NEAR(report.worst.error, 1e-6, 1e-9);
  EXPECT_GT(report.worst.ratio, 1);
}

TEST(Verify, FindsOneWrongOutcome) {
  const std::string path = testing::TempDir() + "/wrong_table.safetensors";
  SafetensorsMetadata metadata;
  TensorMap tensors = ReadSafetensors(kFixtures + "frozenlake_custom.safetensors", &metadata);
  tensors.At("next").data<int64_t>()[1] += 1;  // of state 0, action 0: the step that does not slip
  WriteSafetensors(path, tensors, metadata);
  std::string failed;
  for (const VerifyField& field : VerifyEnvironmentFile("", path).fields) {
    if (field.failed > 0) failed += field.tensor + " ";
  }
  EXPECT_EQ(failed, "next steps (drawn) ");
}

TEST(Verify, FindsOneWrongPayout) {
  const std::string path = testing::TempDir() + "/wrong_hands.safetensors";
  SafetensorsMetadata metadata;
  TensorMap tensors = ReadSafetensors(kFixtures + "blackjack.safetensors", &metadata);
  tensors.At("trace").data<int64_t>()[8 + 7] += 1;  // of the second row, twice the reward
  WriteSafetensors(path, tensors, metadata);
  const VerifyReport report = VerifyEnvironmentFile("", path);
  EXPECT_EQ(report.failed, 1);
  EXPECT_EQ(report.worst.tensor, "trace.reward");
}

TEST(Verify, FindsOneWrongCell) {
  const std::string path = testing::TempDir() + "/wrong_grid.safetensors";
  SafetensorsMetadata metadata;
  TensorMap tensors = ReadSafetensors(kFixtures + "minigrid_doorkey.safetensors", &metadata);
  tensors.At("obs").data<uint8_t>()[5 * 5 * 3 + 7] ^= 1;  // of the second row
  WriteSafetensors(path, tensors, metadata);
  const VerifyReport report = VerifyEnvironmentFile("", path);
  EXPECT_EQ(report.failed, 1);
  EXPECT_EQ(report.worst.tensor, "obs");
}

TEST(Verify, FindsLayoutsOfAnotherKind) {
  // Agents anywhere instead of in the corner.
  const std::string path = testing::TempDir() + "/wrong_layouts.safetensors";
  SafetensorsMetadata metadata;
  const TensorMap tensors =
      ReadSafetensors(kFixtures + "minigrid_empty_random.safetensors", &metadata);
  metadata["env"] = "MiniGrid-Empty-5x5-v0";
  WriteSafetensors(path, tensors, metadata);
  std::string failed;
  for (const VerifyField& field : VerifyEnvironmentFile("", path).fields) {
    if (field.failed > 0) failed += field.tensor + " ";
  }
  EXPECT_EQ(failed, "layouts.agent ");
}

TEST(Verify, RefusesTablesOfAnotherEnvironment) {
  EXPECT_THROW(VerifyEnvironmentFile("CartPole-v1", kFixtures + "frozenlake_custom.safetensors"),
               Error);
  EXPECT_THROW(VerifyEnvironmentFile("FrozenLake8x8-v1", kFixtures + "acrobot.safetensors"), Error);
}

TEST(Verify, RefusesTablesThatAreCut) {
  const std::string path = testing::TempDir() + "/cut_table.safetensors";
  for (const char* tensor : {"next", "reward", "terminated", "initial"}) {
    SafetensorsMetadata metadata;
    TensorMap tensors = ReadSafetensors(kFixtures + "cliffwalking_slippery.safetensors", &metadata);
    tensors.Set(tensor, tensors.At(tensor).Slice(0, 3).Clone());
    WriteSafetensors(path, tensors, metadata);
    EXPECT_THROW(VerifyEnvironmentFile("", path), Error) << tensor;
  }
}

TEST(Verify, UsesTheRecordedArguments) {
  const std::string path = testing::TempDir() + "/default.safetensors";
  SafetensorsMetadata metadata;
  const TensorMap tensors = ReadSafetensors(kFixtures + "pendulum_f32.safetensors", &metadata);
  metadata["kwargs"] = "{}";  // gravity 10 instead of 9.81
  WriteSafetensors(path, tensors, metadata);
  EXPECT_GT(VerifyEnvironmentFile("", path).failed, 100);
}

TEST(Verify, NamesWhatItCannotTest) {
  EXPECT_THROW(VerifyEnvironmentFile("", kFixtures + "nothing.safetensors"), Error);
  EXPECT_THROW(VerifyEnvironmentFile("CartPole-v7", kFixtures + "pendulum_f32.safetensors"), Error);
  const std::string path = testing::TempDir() + "/other.safetensors";
  TensorMap tensors;
  tensors.Set("x", Tensor::Zeros({2}));
  WriteSafetensors(path, tensors, {{"env", "CartPole-v1"}});
  EXPECT_THROW(VerifyEnvironmentFile("", path), Error);
}

TEST(Verify, AFolderListsWhatItSkips) {
  const std::string folder = testing::TempDir() + "/verify_folder";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(kFixtures + "acrobot.safetensors", folder + "/acrobot.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  TensorMap tensors;
  tensors.Set("x", Tensor::Zeros({2}));
  WriteSafetensors(folder + "/tetris.safetensors", tensors, {{"env", "Tetris-v0"}});
  const VerifyReport report = VerifyEnvironmentFolder(folder);
  EXPECT_EQ(report.files, std::vector<std::string>{"acrobot.safetensors"});
  EXPECT_EQ(report.skipped,
            std::vector<std::string>{"tetris.safetensors: Tetris-v0 is not registered"});
  EXPECT_EQ(report.failed, 0);
}

class Reference : public testing::TestWithParam<const char*> {};

TEST_P(Reference, IsReproduced) {
  const char* reference = std::getenv("WEFT_REFERENCE");
  if (reference == nullptr) GTEST_SKIP() << "WEFT_REFERENCE does not name the reference data";
  const std::string name = GetParam();
  if (name.starts_with("mujoco") && !Registered("Hopper-v5"))
    GTEST_SKIP() << "built without MuJoCo";
  if (name.starts_with("dmc_")) {
    const EnvironmentEntry* walker = Environments().Find("dm_control/walker-walk");
    if (walker == nullptr) GTEST_SKIP() << "built without MuJoCo";
    if (const std::string why = WhyUnavailable(*walker); !why.empty()) GTEST_SKIP() << why;
  }
  const VerifyReport report =
      VerifyEnvironmentFile("", std::string(reference) + "/environments/" + name + ".safetensors");
  EXPECT_GT(report.checked, name == "mpe_random_returns" ? 25 : 300);
  EXPECT_EQ(report.failed, 0) << Failures(report);
}
INSTANTIATE_TEST_SUITE_P(
    Verify, Reference,
    testing::Values("classic_acrobot_v1", "classic_cartpole_v1", "classic_mountaincar_v0",
                    "classic_mountaincarcontinuous_v0", "classic_pendulum_v1", "toytext_blackjack",
                    "toytext_cliffwalking", "toytext_cliffwalking_slippery",
                    "toytext_frozenlake_4x4", "toytext_frozenlake_4x4_slippery",
                    "toytext_frozenlake_8x8", "toytext_frozenlake_8x8_slippery", "toytext_taxi",
                    "toytext_taxi_rainy"),
    [](const auto& parameter) { return std::string(parameter.param); });
INSTANTIATE_TEST_SUITE_P(VerifyGames, Reference,
                         testing::Values("boards_connect_four", "boards_tictactoe"),
                         [](const auto& parameter) { return std::string(parameter.param); });
// All but box2d_bipedalwalker_v3, whose 100 random episodes of up to 1600 steps take seconds.
INSTANTIATE_TEST_SUITE_P(VerifyBox2d, Reference,
                         testing::Values("box2d_lunarlander_continuous_v3", "box2d_lunarlander_v3"),
                         [](const auto& parameter) { return std::string(parameter.param); });
// All but mujoco_humanoidstandup_v5, whose 20 random episodes of 1000 steps take seconds.
INSTANTIATE_TEST_SUITE_P(
    VerifyMujoco, Reference,
    testing::Values("mujoco_ant_v4__contact_forces", "mujoco_ant_v4__default", "mujoco_ant_v5",
                    "mujoco_ant_v5__no_cfrc", "mujoco_ant_v5__positions", "mujoco_ant_v5__weights",
                    "mujoco_halfcheetah_v4__default", "mujoco_halfcheetah_v5",
                    "mujoco_halfcheetah_v5__positions", "mujoco_halfcheetah_v5__weights",
                    "mujoco_hopper_v4__default", "mujoco_hopper_v5",
                    "mujoco_hopper_v5__nonterminating", "mujoco_hopper_v5__weights",
                    "mujoco_humanoid_v4__default", "mujoco_humanoid_v5",
                    "mujoco_humanoid_v5__compact", "mujoco_humanoid_v5__weights",
                    "mujoco_humanoidstandup_v4__default", "mujoco_humanoidstandup_v5__weights",
                    "mujoco_inverteddoublependulum_v4__default", "mujoco_inverteddoublependulum_v5",
                    "mujoco_inverteddoublependulum_v5__weights",
                    "mujoco_invertedpendulum_v4__default", "mujoco_invertedpendulum_v5",
                    "mujoco_pusher_v5", "mujoco_pusher_v5__weights", "mujoco_reacher_v4__default",
                    "mujoco_reacher_v5", "mujoco_reacher_v5__weights", "mujoco_swimmer_v4__default",
                    "mujoco_swimmer_v5", "mujoco_swimmer_v5__positions",
                    "mujoco_walker2d_v4__default", "mujoco_walker2d_v5",
                    "mujoco_walker2d_v5__nonterminating", "mujoco_walker2d_v5__weights"),
    [](const auto& parameter) { return std::string(parameter.param); });
INSTANTIATE_TEST_SUITE_P(
    VerifyParticles, Reference,
    testing::Values("mpe_random_returns", "mpe_simple_adversary_continuous",
                    "mpe_simple_adversary_discrete", "mpe_simple_continuous",
                    "mpe_simple_crypto_continuous", "mpe_simple_crypto_discrete",
                    "mpe_simple_discrete", "mpe_simple_push_continuous",
                    "mpe_simple_push_discrete", "mpe_simple_reference_continuous",
                    "mpe_simple_reference_discrete", "mpe_simple_speaker_listener_continuous",
                    "mpe_simple_speaker_listener_discrete", "mpe_simple_spread_continuous",
                    "mpe_simple_spread_discrete", "mpe_simple_tag_continuous",
                    "mpe_simple_tag_discrete", "mpe_simple_world_comm_continuous",
                    "mpe_simple_world_comm_discrete"),
    [](const auto& parameter) { return std::string(parameter.param); });
INSTANTIATE_TEST_SUITE_P(VerifyTolerance, Reference, testing::Values("dmc_tolerance"),
                         [](const auto& parameter) { return std::string(parameter.param); });
INSTANTIATE_TEST_SUITE_P(
    VerifySuite, Reference,
    testing::Values(
        "dmc_acrobot_swingup", "dmc_acrobot_swingup_sparse", "dmc_ball_in_cup_catch",
        "dmc_cartpole_balance", "dmc_cartpole_balance_sparse", "dmc_cartpole_swingup",
        "dmc_cartpole_swingup_sparse", "dmc_cartpole_three_poles", "dmc_cartpole_two_poles",
        "dmc_cheetah_run", "dmc_dog_fetch", "dmc_dog_run", "dmc_dog_stand", "dmc_dog_trot",
        "dmc_dog_walk", "dmc_finger_spin", "dmc_finger_turn_easy", "dmc_finger_turn_hard",
        "dmc_fish_swim", "dmc_fish_upright", "dmc_hopper_hop", "dmc_hopper_stand",
        "dmc_humanoid_cmu_run", "dmc_humanoid_cmu_stand", "dmc_humanoid_cmu_walk",
        "dmc_humanoid_run", "dmc_humanoid_run_pure_state", "dmc_humanoid_stand",
        "dmc_humanoid_walk", "dmc_lqr_lqr_2_1", "dmc_lqr_lqr_6_2", "dmc_manipulator_bring_ball",
        "dmc_manipulator_bring_peg", "dmc_manipulator_insert_ball", "dmc_manipulator_insert_peg",
        "dmc_pendulum_swingup", "dmc_point_mass_easy", "dmc_point_mass_hard",
        "dmc_quadruped_escape", "dmc_quadruped_fetch", "dmc_quadruped_run", "dmc_quadruped_walk",
        "dmc_reacher_easy", "dmc_reacher_hard", "dmc_stacker_stack_2", "dmc_stacker_stack_4",
        "dmc_swimmer_swimmer15", "dmc_swimmer_swimmer6", "dmc_walker_run", "dmc_walker_stand",
        "dmc_walker_walk"),
    [](const auto& parameter) { return std::string(parameter.param); });

}  // namespace
}  // namespace weft
