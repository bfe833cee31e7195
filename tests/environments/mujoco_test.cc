#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>

#include "base/check.h"
#include "environments/batch_environment.h"
#include "environments/environment_row.h"
#include "environments/mujoco/mujoco_simulation.h"

namespace weft {
namespace {

// A cart with a pole, and `balls` loose balls above a floor: contacts begin after some steps.
std::string WriteModel(const std::string& name, int balls, const std::string& memory) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream out(path);
  out << "<mujoco><size memory=\"" << memory << "\"/><option timestep=\"0.02\"/><worldbody>"
      << "<geom type=\"plane\" size=\"9 9 1\"/>"
      << "<body pos=\"5 0 3\"><joint name=\"slider\" type=\"slide\" axis=\"1 0 0\"/><geom "
         "size=\".1\"/>"
      << "<body><joint type=\"hinge\" axis=\"0 1 0\"/><geom size=\".1\" pos=\"0 0 "
         ".5\"/></body></body>";
  for (int i = 0; i < balls; ++i) {
    out << "<body pos=\"0 " << 0.15 * i << " .4\"><freejoint/><geom size=\".1\"/></body>";
  }
  out << "</worldbody><actuator><motor joint=\"slider\" ctrlrange=\"-1 1\" "
         "ctrllimited=\"true\"/></actuator></mujoco>";
  return path;
}

std::unique_ptr<BatchEnvironment> Pendulum(const std::string& arguments,
                                           const BatchOptions& options) {
  const EnvironmentEntry& entry = Environments().At("InvertedPendulum-v5");
  const auto config = entry.make_arguments();
  ConfigSource::Text(arguments, "test").Parse(*config);
  return entry.make_batch(*config, options);
}

TEST(Mujoco, TakesAModelFileOfTheUsersOwn) {
  const auto batch = Pendulum("{xml_file: " + WriteModel("own.xml", 1, "1M") + "}", {.rows = 1});
  EXPECT_EQ(batch->spec().leaf("observation").shape, Shape({2 + 7 + 2 + 6}));
  EXPECT_EQ(batch->spec().action.ToString(), "Box(-1, 1, [1])");
}

TEST(Mujoco, NamesWhereItLookedForAModel) {
  try {
    MujocoSimulation("nobody.xml");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_NE(error.message().find("gymnasium-1.4.0/assets/nobody.xml"), std::string::npos)
        << error.message();
  }
}

TEST(Mujoco, NamesWhatATaskMissesInAModel) {
  const auto refusal = [](const char* id, const std::string& xml_file) -> std::string {
    const EnvironmentEntry& entry = Environments().At(id);
    const auto config = entry.make_arguments();
    ConfigSource::Text("{xml_file: " + xml_file + "}", "test").Parse(*config);
    try {
      entry.make(*config);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
      return error.message();
    }
    return "nothing";
  };
  const std::string cart = WriteModel("cart.xml", 0, "1M"), ball = WriteModel("ball.xml", 1, "1M");
  EXPECT_EQ(refusal("Hopper-v5", cart), cart +
                                            " has 2 coordinates and 2 velocities: Hopper-v5 needs "
                                            "3 and 1 or more");
  EXPECT_NE(refusal("InvertedDoublePendulum-v5", ball).find("no site"), std::string::npos);
  EXPECT_NE(refusal("Reacher-v5", ball).find("no body \"fingertip\""), std::string::npos);
  EXPECT_EQ(refusal("InvertedPendulum-v4", cart), "nothing");
}

TEST(Mujoco, FindsBodiesByNameAndNumber) {
  MujocoSimulation simulation("half_cheetah.xml");
  EXPECT_EQ(simulation.Body("torso"), 1);
  EXPECT_EQ(simulation.Body("1"), 1);
  EXPECT_THROW(simulation.Body("8"), Error);
  EXPECT_THROW(simulation.Body("-1"), Error);
}

TEST(Mujoco, SaysWhatIsWrongWithAModelFile) {
  const std::string path = testing::TempDir() + "/bad.xml";
  std::ofstream(path) << "<mujoco><worldbody><body><joint/></body></worldbody></mujoco>";
  try {
    MujocoSimulation simulation(path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_NE(error.message().find(path), std::string::npos) << error.message();
    EXPECT_GT(error.message().size(), path.size() + 10);
  }
}

TEST(Mujoco, AnErrorInAStepNamesTheRowAndEndsNothing) {
  const std::string path = WriteModel("small.xml", 40, "60K");
  const auto batch =
      Pendulum("{xml_file: " + path + "}", {.rows = 1, .first_row = 3, .seed = 5, .time_limit = 0});
  TimeStep step = batch->MakeTimeStep();
  try {
    batch->Reset(step);
    for (int i = 0; i < 200; ++i) batch->Step(Tensor::Zeros({1, 1}), step);
    FAIL() << "60 KiB were enough";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("row 3 (seed 5), step "), std::string::npos)
        << error.message();
  }
}

TEST(Mujoco, WarningsLeaveNoLogFile) {
  std::filesystem::remove("MUJOCO_LOG.TXT");  // that MuJoCo in Python may have left
  MujocoSimulation simulation("inverted_pendulum.xml");
  const double huge[] = {1e30, 0}, zero[] = {0, 0}, control[] = {0};
  simulation.Reset(huge, zero);
  simulation.Step(control, 1);  // MuJoCo warns of an unstable simulation
  EXPECT_FALSE(std::filesystem::exists("MUJOCO_LOG.TXT"));
}

TEST(Mujoco, SharesItsModelsAndSavesWarmStarts) {
  MujocoSimulation simulation("half_cheetah.xml"), other("half_cheetah.xml");
  EXPECT_EQ(simulation.body_mass().data(), other.body_mass().data());
  const std::vector<double> velocity(9, 0.1), control(6, 0.5);
  simulation.Reset(simulation.initial_position(), velocity);
  simulation.Step(control, 50);  // on the ground: the solver's warm start matters
  Writer writer;
  simulation.Save(writer);
  Reader reader(writer.bytes());
  other.Load(reader);
  simulation.Step(control, 50);
  other.Step(control, 50);
  for (size_t i = 0; i < 9; ++i) EXPECT_EQ(simulation.position()[i], other.position()[i]);
}

TEST(Mujoco, RefusesTheStateOfAnotherModel) {
  MujocoSimulation cheetah("half_cheetah.xml"), hopper("hopper.xml");
  Writer writer;
  cheetah.Save(writer);
  Reader reader(writer.bytes());
  EXPECT_THROW(hopper.Load(reader), Error);
}

TEST(Mujoco, HealthyRangesNeedTwoNumbers) {
  const EnvironmentEntry& entry = Environments().At("Hopper-v5");
  const auto config = entry.make_arguments();
  EXPECT_THROW(ConfigSource::Text("{healthy_z_range: [1]}", "test").Parse(*config), Error);
  const auto infinite = entry.make_arguments();
  EXPECT_NO_THROW(ConfigSource::Text("{healthy_z_range: [0.7, .inf]}", "test").Parse(*infinite));
}

TEST(Mujoco, TakesAntsMainBodyByNameOrNumber) {
  const EnvironmentEntry& entry = Environments().At("Ant-v5");
  const auto forward = [&](const std::string& arguments) {
    const auto config = entry.make_arguments();
    ConfigSource::Text(arguments, "test").Parse(*config);
    EnvironmentRow row(entry.make(*config));
    Rng rng(1, Purpose::kTest);
    row.Reset(rng);
    const std::vector<float> action(8, 1);
    row.Step({action.data(), DType::kFloat32}, rng);
    return row.Info().at(5);
  };
  EXPECT_EQ(forward("{main_body: torso}"), forward("{}"));
  EXPECT_EQ(forward("{main_body: front_left_leg}"), forward("{main_body: 2}"));
  EXPECT_NE(forward("{main_body: aux_1}"), forward("{}"));
  EXPECT_THROW(forward("{main_body: tail}"), Error);
}

TEST(Mujoco, VersionsTakeTheirOwnArguments) {
  const auto parse = [](const char* id, const char* arguments) {
    ConfigSource::Text(arguments, "test").Parse(*Environments().At(id).make_arguments());
  };
  EXPECT_NO_THROW(parse("Ant-v4", "{use_contact_forces: true}"));
  EXPECT_THROW(parse("Ant-v5", "{use_contact_forces: true}"), Error);
  EXPECT_THROW(parse("Ant-v5", "{contact_force_range: [1, -1]}"), Error);
  EXPECT_THROW(parse("Humanoid-v4", "{contact_cost_weight: 1}"), Error);
  EXPECT_THROW(parse("Humanoid-v5", "{contact_cost_range: [1, -.inf]}"), Error);
  EXPECT_THROW(parse("Reacher-v5", "{reset_noise_scale: 0.1}"), Error);
  EXPECT_EQ(Environments().Find("Pusher-v4"), nullptr);
}

}  // namespace
}  // namespace weft
