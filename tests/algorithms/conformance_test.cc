// What every registered algorithm promises: one hash in every placement, on any number of threads,
// with the gradient plan on and off, and after resuming any checkpoint under another placement.
#include <gtest/gtest.h>

#include "tests/algorithms/run_algorithm.h"
#include "tests/environments/relay_environment.h"

namespace weft {
namespace {

// A short run of each algorithm on four rows of a probe, or for NAME_agents on four environments of
// two agents, which have different numbers of actions.
std::string ShortRun(const std::string& name) {
  const std::string algorithm = name.substr(0, name.find('_'));
  const bool agents = algorithm != name;
  const std::string continuous = algorithm == "sac" ? ", arguments: {continuous: true}" : "";
  std::string yaml =
      "algorithm: " + algorithm + "\nseed: 3\ntotal_steps: 800\nthreads: 1\nenvironment: {id: " +
      (agents ? "simple_speaker_listener_v4" : "Probe-Policy-v0") + ", rows: 4" + continuous +
      "}\n"
      "checkpoint: {every: 100, min_seconds: 0}\nevaluation: {every: 400, episodes: 4}\n"
      "network: {hidden: [16, 16]}\n";
  if (agents && algorithm == "ppo") yaml += "critic: state\n";
  if (algorithm == "ppo") return yaml + "rollout_steps: 8\nminibatch: 16\nepochs: 2\n";
  return yaml +
         "train_every: 8\nreplay: {capacity: 300, batch_size: 16, min_size: 40, updates_per_step: "
         "0.5}\n";
}

class AlgorithmConformance : public testing::TestWithParam<std::string> {
 protected:
  AlgorithmRun RunWith(const std::vector<std::string>& overrides, const Cut* resume = nullptr) {
    algorithms_.push_back(AlgorithmFrom(ShortRun(GetParam()), overrides));
    return RunAlgorithm(*algorithms_.back(), resume);
  }

 private:
  std::vector<std::unique_ptr<Algorithm>> algorithms_;
};

TEST_P(AlgorithmConformance, PlacementsGiveOneHash) {
  const AlgorithmRun serial = RunWith({});
  EXPECT_GE(serial.steps, 800);
  EXPECT_EQ(RunWith({"actors=2"}).hash, serial.hash) << "two actors, serial";
  EXPECT_EQ(RunWith({"placement=threads", "threads=2"}).hash, serial.hash) << "threads";
  EXPECT_EQ(RunWith({"placement=threads", "threads=3", "actors=4"}).hash, serial.hash)
      << "threads, four actors";
}

TEST_P(AlgorithmConformance, ProcessesGiveTheSerialHash) {
  const AlgorithmRun serial = RunWith({});
  EXPECT_EQ(RunWith({"placement=split_actors", "processes=2"}).hash, serial.hash);
}

TEST_P(AlgorithmConformance, KernelThreadsGiveOneHash) {
  const uint64_t one = RunWith({"network.hidden=[64,300]"}).hash;
  EXPECT_EQ(RunWith({"network.hidden=[64,300]", "threads=2"}).hash, one);
  EXPECT_EQ(RunWith({"network.hidden=[64,300]", "threads=3"}).hash, one);
}

TEST_P(AlgorithmConformance, EveryCheckpointResumesToTheSameHash) {
  const AlgorithmRun whole = RunWith({});
  ASSERT_GE(whole.checkpoints.size(), 4u);
  for (size_t i = 0; i < whole.checkpoints.size(); ++i) {
    if (StepsOf(whole.checkpoints[i]) >= 800) continue;  // the run was over
    EXPECT_EQ(RunWith({}, &whole.checkpoints[i]).hash, whole.hash) << "checkpoint " << i;
  }
  EXPECT_EQ(RunWith({"placement=threads", "threads=2", "actors=1"}, &whole.checkpoints[1]).hash,
            whole.hash)
      << "resumed on threads";
}

// An episode of the relay takes 5 ticks of 3 rows, the reset among them, of which agents are there
// for 2 + 3 + 3 steps.
TEST(SeveralAgents, OnlyThoseWhoAreThereCount) {
  Environments().Add("Relay-v0", MakeMultiAgentEntry<RelayEnvironment>("a relay"));
  const auto ppo = AlgorithmFrom(
      "algorithm: ppo\ntotal_steps: 64\nthreads: 1\nenvironment: {id: Relay-v0, rows: 4}\n"
      "rollout_steps: 5\nminibatch: 60\nevaluation: {every: 1000}\n");
  const AlgorithmRun run = RunAlgorithm(*ppo);
  EXPECT_EQ(run.steps, 64) << "two rollouts of four episodes of eight steps";
  EXPECT_EQ(EvaluateRun(*ppo, run).mean_length, 4);

  const auto dqn = AlgorithmFrom(
      "algorithm: dqn\ntotal_steps: 64\nthreads: 1\nenvironment: {id: Relay-v0, rows: 4}\n"
      "train_every: 60\nevaluation: {every: 1000}\n"
      "replay: {capacity: 100, batch_size: 4, min_size: 20}\n");
  EXPECT_EQ(RunAlgorithm(*dqn).steps, 64);
}

// Two learners, each on half of every minibatch, joined by Reduce.
TEST(PpoLearners, SumTheirGradientsToOneHashInEveryPlacement) {
  const auto run = [](const std::vector<std::string>& placement) {
    std::vector<std::string> overrides = {"learners=2", "actors=2"};
    overrides.insert(overrides.end(), placement.begin(), placement.end());
    const auto algorithm = AlgorithmFrom(ShortRun("ppo"), overrides);
    return RunAlgorithm(*algorithm).hash;
  };
  const uint64_t serial = run({});
  EXPECT_EQ(run({"placement=threads", "threads=2"}), serial);
  EXPECT_EQ(run({"placement=data_parallel", "processes=2"}), serial);
  EXPECT_EQ(run({"placement=split_actors", "processes=2"}), serial);
}

TEST_P(AlgorithmConformance, SeedsDiffer) {
  EXPECT_NE(RunWith({"seed=4"}).hash, RunWith({}).hash);
}

INSTANTIATE_TEST_SUITE_P(Registry, AlgorithmConformance, testing::ValuesIn(Algorithms().Names()),
                         [](const auto& name) { return name.param; });
INSTANTIATE_TEST_SUITE_P(Several, AlgorithmConformance, testing::Values("ppo_agents", "dqn_agents"),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace weft
