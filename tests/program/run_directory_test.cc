#include "program/run_directory.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>

#include "base/file.h"
#include "tests/base/temporary_folder.h"

namespace weft {
namespace {

// Works in a folder of its own, as runs live under the current one.
class RunDirectoryTest : public testing::Test {
 protected:
  RunDirectoryTest() : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder_.path());
  }
  ~RunDirectoryTest() override { std::filesystem::current_path(before_); }

  static Checkpoint CheckpointAt(int64_t steps, float weight = 1) {
    TensorMap learner;
    learner.Set("policy.network.weight", Tensor::Full({2, 3}, weight));
    learner.Set("steps", Tensor::From<int64_t>({1}, {steps}));
    return {.path = "",
            .steps = steps,
            .wall_seconds = 1.5,
            .perturbed = false,
            .cut = {{"learner.0", learner}, {"environment.0", {}}}};
  }

 private:
  TemporaryFolder folder_;
  std::filesystem::path before_;
};

TEST_F(RunDirectoryTest, NamesAreMadeUniqueButAGivenOneIsNeverTakenTwice) {
  EXPECT_EQ(RunDirectory::Create("", "ppo", "a: 1\n").path(), "runs/ppo");
  EXPECT_EQ(RunDirectory::Create("", "ppo", "a: 1\n").path(), "runs/ppo-2");
  RunDirectory::Create("mine", "ppo", "a: 1\n");
  EXPECT_THROW(RunDirectory::Create("mine", "ppo", "a: 1\n"), Error);
  for (const char* name : {"../up", "a/b", ".hidden", "sp ace"}) {
    EXPECT_THROW(RunDirectory::Create(name, "ppo", ""), Error) << name;
  }
}

TEST_F(RunDirectoryTest, TheNewestCheckpointComesBackExactly) {
  const auto run = RunDirectory::Create("run", "", "a: 1\n");
  run.Save(CheckpointAt(100, 1), 3);
  run.Save(CheckpointAt(200, 2), 3);
  std::vector<std::string> warnings;
  const auto newest = RunDirectory::Open("run").Newest(warnings);
  ASSERT_TRUE(newest);
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(newest->steps, 200);
  EXPECT_EQ(StepsOf(newest->cut), 200);
  EXPECT_EQ(newest->wall_seconds, 1.5);
  EXPECT_EQ(newest->cut.size(), 2u) << "fragments without state are there too";
  EXPECT_EQ(Hash(PolicyOf(*newest)), Hash(PolicyOf(CheckpointAt(200, 2))));
}

TEST_F(RunDirectoryTest, KeepsOnlyTheNewest) {
  const auto run = RunDirectory::Create("run", "", "a: 1\n");
  for (int64_t step = 1; step <= 6; ++step) run.Save(CheckpointAt(step), 2);
  EXPECT_EQ(ListDirectory("runs/run/checkpoints"),
            (std::vector<std::string>{"000000000005", "000000000006"}));
}

// Damages one file of the newest checkpoint in some way.
class Damage : public RunDirectoryTest, public testing::WithParamInterface<const char*> {};

TEST_P(Damage, FallsBackToTheCheckpointBefore) {
  const auto run = RunDirectory::Create("run", "", "a: 1\n");
  run.Save(CheckpointAt(100), 3);
  run.Save(CheckpointAt(200), 3);
  const std::string how = GetParam(), folder = "runs/run/checkpoints/000000000200/";
  const std::string state = folder + "state.safetensors";
  if (how == "truncated")
    std::filesystem::resize_file(state, std::filesystem::file_size(state) - 1);
  if (how == "flipped") {
    std::fstream file(state, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-3, std::ios::end);
    const int byte = file.get();
    file.seekp(-3, std::ios::end);
    file.put(static_cast<char>(byte ^ 1));
  }
  if (how == "missing") std::filesystem::remove(state);
  if (how == "no record") std::filesystem::remove(folder + "checkpoint.json");
  if (how == "junk record") WriteFileAtomic(folder + "checkpoint.json", "{]");
  std::vector<std::string> warnings;
  const auto newest = run.Newest(warnings);
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->steps, 100);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("000000000200"), std::string::npos) << warnings[0];
}
INSTANTIATE_TEST_SUITE_P(Kinds, Damage,
                         testing::Values("truncated", "flipped", "missing", "no record",
                                         "junk record"));

TEST_F(RunDirectoryTest, NothingNonFiniteIsSaved) {
  const auto run = RunDirectory::Create("run", "", "a: 1\n");
  try {
    run.Save(CheckpointAt(1, std::numeric_limits<float>::quiet_NaN()), 3);
    FAIL() << "a policy with NaN was saved";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDiverged);
    EXPECT_NE(std::string(error.what()).find("network.weight"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(ListDirectory("runs/run/checkpoints").empty());
}

TEST_F(RunDirectoryTest, AMissingRunNamesTheNearest) {
  RunDirectory::Create("half-cheetah", "", "a: 1\n");
  try {
    RunDirectory::Open("half-cheeta");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_NE(std::string(error.what()).find("half-cheetah"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace weft
