// Killing a run and going on: the parameters are those of the run that was never killed.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/program/weft_process.h"

namespace weft {
namespace {

using Json = nlohmann::json;

std::string ConfigOf(const std::string& algorithm) {
  const std::string common =
      "algorithm: " + algorithm +
      "\nthreads: 1\ncheckpoint: {every: 500, min_seconds: 0}\nnetwork: {hidden: [32, 32]}\n"
      "evaluation: {every: 1000000000, final_episodes: 1}\n";
  if (algorithm == "ppo") {
    return common +
           "total_steps: 100000\nenvironment: {id: CartPole-v1, rows: 4}\nrollout_steps: "
           "16\nminibatch: 32\n";
  }
  const std::string id = algorithm == "dqn" ? "CartPole-v1" : "Pendulum-v1";
  return common + "total_steps: 10000\nenvironment: {id: " + id +
         "}\nreplay: {capacity: 2000, batch_size: 32, min_size: 100}\n" +
         (algorithm == "dqn" ? "train_every: 1\n" : "");
}

class Resume : public testing::TestWithParam<std::string> {};

TEST_P(Resume, AfterKillsAtAnyMomentEqualsTheUninterruptedRun) {
  const WeftProcess weft;
  weft.Write("config.yaml", ConfigOf(GetParam()));
  const auto whole = weft.Run("train config.yaml run=whole --json");
  ASSERT_EQ(whole.status, 0) << whole.error;

  const double seconds = Json::parse(whole.LastLine()).at("wall_seconds");
  const auto go_on = [&] {
    const bool begun = std::filesystem::exists(weft.folder() + "/runs/killed/config.yaml");
    return std::string(begun ? "resume killed --json" : "train config.yaml run=killed --json");
  };
  // A machine that gets faster than it was at first finishes the run: then sooner.
  double after = 0.5 * seconds;
  WeftProcess::Output resumed{.status = -1};
  int kills = 0;
  for (int attempt = 0; attempt < 12 && kills < 3; ++attempt) {
    resumed = weft.Run(go_on(), "timeout -s KILL " + std::to_string(after));
    if (resumed.status != 0) {
      ++kills;
      continue;
    }
    if (kills > 0) break;
    std::filesystem::remove_all(weft.folder() + "/runs/killed");
    after *= 0.6;
  }
  EXPECT_GE(kills, 1) << "the run was over before it could be killed";
  if (resumed.status != 0) resumed = weft.Run(go_on());
  ASSERT_EQ(resumed.status, 0) << resumed.error;
  EXPECT_EQ(Json::parse(resumed.LastLine()).at("parameter_hash"),
            Json::parse(whole.LastLine()).at("parameter_hash"));
}

TEST_P(Resume, AfterAnInterruptEqualsTheUninterruptedRun) {
  const WeftProcess weft;
  weft.Write("config.yaml", ConfigOf(GetParam()));
  const auto whole = weft.Run("train config.yaml run=whole --json");
  const double seconds = Json::parse(whole.LastLine()).at("wall_seconds");
  WeftProcess::Output stopped;
  double after = 0.5 * seconds;
  for (int attempt = 0; attempt < 12; ++attempt) {
    std::filesystem::remove_all(weft.folder() + "/runs/stopped");
    stopped = weft.Run("train config.yaml run=stopped --json",
                       "timeout --preserve-status -s INT " + std::to_string(after));
    if (stopped.status == 75) break;
    after *= stopped.status == 0 ? 0.6 : 1.5;  // after its end, or before the run began
  }
  ASSERT_EQ(stopped.status, 75) << stopped.error;
  EXPECT_EQ(weft.Run("evaluate stopped --episodes 1").status, 0) << "it left a checkpoint";
  const auto resumed = weft.Run("resume stopped --json");
  ASSERT_EQ(resumed.status, 0) << resumed.error;
  EXPECT_EQ(Json::parse(resumed.LastLine()).at("parameter_hash"),
            Json::parse(whole.LastLine()).at("parameter_hash"));
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Resume, testing::Values("ppo", "dqn", "sac"));

TEST(ResumeRun, GoesOnPastTheEndWithMoreSteps) {
  const WeftProcess weft;
  weft.Write("config.yaml", ConfigOf("ppo"));
  weft.Run("train config.yaml run=short total_steps=6000 --json");
  const auto longer = weft.Run("resume short total_steps=12000 --json");
  ASSERT_EQ(longer.status, 0) << longer.error;
  EXPECT_GE(Json::parse(longer.LastLine()).at("steps").get<int64_t>(), 12000);
}

}  // namespace
}  // namespace weft
