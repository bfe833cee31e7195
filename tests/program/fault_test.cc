// Faults of the world around a run: a worker that dies, a disk that is full.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "tests/program/weft_process.h"

namespace weft {
namespace {

using Json = nlohmann::json;

// Processes whose parent is `parent`.
std::set<pid_t> ChildrenOf(pid_t parent) {
  std::set<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    const size_t end = text.rfind(')');
    if (end == std::string::npos) continue;
    std::istringstream rest(text.substr(end + 2));
    std::string state;
    pid_t of = 0;
    rest >> state >> of;
    if (of == parent) children.insert(std::stoi(name));
  }
  return children;
}

constexpr char kConfig[] =
    "algorithm: ppo\ntotal_steps: 120000\nthreads: 1\nenvironment: {id: CartPole-v1, rows: "
    "4}\nrollout_steps: 64\n"
    "minibatch: 64\nplacement: split_actors\nprocesses: 2\nevaluation: {every: 1000000, "
    "final_episodes: 1}\n";

TEST(KilledWorker, IsStartedAgainAndTheRunIsMarkedPerturbed) {
  const WeftProcess weft;
  weft.Write("config.yaml", kConfig);
  const std::string command = "cd '" + weft.folder() +
                              "' && exec " WEFT_BINARY
                              " train config.yaml run=one --json >out.txt 2>error.txt";
  const char* arguments[] = {"sh", "-c", command.c_str(), nullptr};
  pid_t main = 0;
  ASSERT_EQ(posix_spawnp(&main, "sh", nullptr, nullptr, const_cast<char**>(arguments), environ), 0);
  // Kill one worker once it has begun to work.
  std::set<pid_t> workers;
  for (int i = 0; i < 500 && (workers.size() < 2 ||
                              !std::filesystem::exists(weft.folder() + "/runs/one/metrics.jsonl"));
       ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    workers = ChildrenOf(main);
  }
  ASSERT_EQ(workers.size(), 2u) << weft.Read("error.txt");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  kill(*workers.begin(), SIGKILL);
  int status = 0;
  waitpid(main, &status, 0);
  ASSERT_EQ(WEXITSTATUS(status), 0) << weft.Read("error.txt");
  const std::string out = weft.Read("out.txt");
  const Json summary = Json::parse(out);
  EXPECT_EQ(summary.at("perturbed"), true) << weft.Read("error.txt");
  EXPECT_GE(summary.at("steps").get<int64_t>(), 120000);
  EXPECT_EQ(Json::parse(weft.Read("runs/one/manifest.json")).at("perturbed"), true);
  for (const pid_t worker : workers) EXPECT_NE(kill(worker, 0), 0) << "no worker outlives the run";
}

TEST(FullDisk, TheRunGoesOnAndWarns) {
  const WeftProcess weft;
  weft.Write("config.yaml",
             "algorithm: ppo\ntotal_steps: 4000\nthreads: 1\nenvironment: {id: CartPole-v1, rows: "
             "4}\nrollout_steps: 64\n"
             "minibatch: 64\ncheckpoint: {every: 1000, min_seconds: 0}\nevaluation: "
             "{final_episodes: 2}\n");
  // Files may have 16 blocks of 512 bytes: enough for config and manifest, not for a checkpoint.
  const auto result =
      weft.Run("train config.yaml run=one --json", "sh -c 'ulimit -f 16; exec \"$@\"' sh");
  EXPECT_EQ(result.status, 0) << result.error;
  EXPECT_NE(result.error.find("no checkpoint at step"), std::string::npos) << result.error;
  EXPECT_EQ(Json::parse(result.LastLine()).at("evaluation").at("n"), 2);
}

TEST(FullDisk, AnOlderCheckpointIsKept) {
  const WeftProcess weft;
  weft.Write("config.yaml",
             "algorithm: ppo\ntotal_steps: 2000\nthreads: 1\nenvironment: {id: CartPole-v1, rows: "
             "4}\nrollout_steps: 64\n"
             "minibatch: 64\nevaluation: {final_episodes: 2}\n");
  ASSERT_EQ(weft.Run("train config.yaml run=one --json").status, 0);
  const auto more =
      weft.Run("resume one total_steps=4000 --json", "sh -c 'ulimit -f 16; exec \"$@\"' sh");
  EXPECT_EQ(more.status, 0) << more.error;
  const auto evaluated = weft.Run("evaluate one --episodes 1 --json");
  ASSERT_EQ(evaluated.status, 0) << evaluated.error;
  EXPECT_LT(Json::parse(evaluated.LastLine()).at("steps").get<int64_t>(), 4000)
      << "the checkpoint from before";
}

}  // namespace
}  // namespace weft
