// Each algorithm on the probes: whether values are learnt, look at the observation, go back through
// time, and steer the policy; and whether memory is used where there is one, and only there.
#include <gtest/gtest.h>

#include "actors/policy_agent.h"
#include "nn/q_network.h"
#include "tensor/ops.h"
#include "tests/algorithms/run_algorithm.h"

namespace weft {
namespace {

std::string PpoOn(const std::string& probe) {
  return "algorithm: ppo\nseed: 1\ntotal_steps: 8000\nthreads: 1\nenvironment: {id: " + probe +
         ", rows: 8}\nrollout_steps: 16\nminibatch: 32\nepochs: 4\nlearning_rate: 3e-3\ngamma: "
         "0.5\n"
         "evaluation: {every: 1000000}\nnetwork: {hidden: [16]}\n";
}

// The value of observations [B, 1] after training.
std::vector<float> PpoValues(const std::string& probe, std::initializer_list<float> observations) {
  const auto algorithm = AlgorithmFrom(PpoOn(probe));
  const AlgorithmRun run = RunAlgorithm(*algorithm);
  NetworkConfig network;
  network.hidden = {16};
  PolicyParts parts(algorithm->environment, network, 0, 1);
  LoadState(parts.network.Parameters(), PolicyIn(run.result.cut).Extract("network"));
  const Tensor x =
      Tensor::From<float>({static_cast<int64_t>(observations.size()), 1}, observations);
  const Tensor value = parts.network.Value(parts.network.value_trunk().Forward(x));
  const auto data = std::as_const(value).data<float>();
  return {data.begin(), data.end()};
}

TEST(PpoProbe, LearnsAConstantValue) {
  EXPECT_NEAR(PpoValues("Probe-Value-v0", {1})[0], 1, 0.05);
}

TEST(PpoProbe, ValueLooksAtTheObservation) {
  const auto values = PpoValues("Probe-Reward-v0", {-1, 1});
  EXPECT_NEAR(values[0], -1, 0.1);
  EXPECT_NEAR(values[1], 1, 0.1);
}

TEST(PpoProbe, RewardIsCarriedBackThroughTime) {
  const auto values = PpoValues("Probe-Credit-v0", {0, 1});
  EXPECT_NEAR(values[0], 0.5, 0.1);  // gamma
  EXPECT_NEAR(values[1], 1, 0.1);
}

// Agents act at random for -80 and stay with the nearest landmark for -24, the team's return.
TEST(PpoProbe, SeveralAgentsLearnToSpread) {
  const std::string yaml =
      "algorithm: ppo\nseed: 1\ntotal_steps: 400000\nthreads: 1\n"
      "environment: {id: simple_spread_v3, rows: 32}\nrollout_steps: 50\nminibatch: 1200\n"
      "epochs: 8\ngamma: 0.95\nlearning_rate: 1e-3\nentropy_coefficient: 0.01\n"
      "evaluation: {every: 1000000000}\n";
  for (const char* critic : {"observation", "state"}) {
    const auto algorithm = AlgorithmFrom(yaml, {std::string("critic=") + critic});
    const Evaluation result = EvaluateRun(*algorithm, RunAlgorithm(*algorithm));
    EXPECT_GT(result.mean, -55) << critic;
    ASSERT_EQ(result.agent_means.size(), 3u);
    EXPECT_NEAR(result.agent_means[0] + result.agent_means[1] + result.agent_means[2], result.mean,
                1e-9);
  }
}

double ReturnOf(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  const auto algorithm = AlgorithmFrom(yaml, overrides);
  return EvaluateRun(*algorithm, RunAlgorithm(*algorithm)).mean;
}

TEST(PpoProbe, SolvesThePolicyProbe) {
  EXPECT_EQ(ReturnOf(PpoOn("Probe-Policy-v0")), 1);
}

TEST(PpoProbe, SolvesTheContinuousPolicyProbe) {
  EXPECT_GT(ReturnOf(PpoOn("Probe-Policy-v0"), {"environment.arguments.continuous=true"}), 0.95);
}

class PpoMemory : public testing::TestWithParam<std::string> {};

TEST_P(PpoMemory, RecurrentNetworksSolveTheMemoryProbe) {
  EXPECT_EQ(ReturnOf(PpoOn("Probe-Memory-v0"),
                     {"network.recurrent=" + GetParam(), "network.recurrent_size=16",
                      "network.recurrent_hidden=[16]", "total_steps=30000", "rollout_steps=16",
                      "minibatch=64", "gamma=0.95"}),
            1);
}
INSTANTIATE_TEST_SUITE_P(Cells, PpoMemory, testing::Values("lstm", "gru"));

TEST(PpoProbe, WithoutMemoryTheMemoryProbeStaysAtChance) {
  EXPECT_LT(ReturnOf(PpoOn("Probe-Memory-v0"), {"gamma=0.95"}), 0.6);
}

std::string DqnOn(const std::string& probe) {
  return "algorithm: dqn\nseed: 1\ntotal_steps: 3000\nthreads: 1\nenvironment: {id: " + probe +
         ", rows: 2}\ntrain_every: 4\ntarget_every: 20\nlearning_rate: 3e-3\ngamma: "
         "0.5\nexploration_fraction: 0.5\n"
         "replay: {capacity: 2000, batch_size: 32, min_size: 100, updates_per_step: 0.5}\n"
         "evaluation: {every: 1000000}\nnetwork: {hidden: [16]}\n";
}

TEST(DqnProbe, ActionValuesGoBackThroughTime) {
  const auto algorithm = AlgorithmFrom(DqnOn("Probe-Credit-v0"));
  const AlgorithmRun run = RunAlgorithm(*algorithm);
  NetworkConfig config;
  config.hidden = {16};
  config.activation = "relu";
  Rng rng(1, Purpose::kTest);
  QNetwork network(config, {1}, 2, false, rng);
  LoadState(network.Parameters(), PolicyIn(run.result.cut).Extract("network"));
  const Tensor q = network.Forward(Tensor::From<float>({2, 1}, {0, 1}));
  for (int action = 0; action < 2; ++action) {
    EXPECT_NEAR(std::as_const(q).data<float>()[action], 0.5, 0.1);
    EXPECT_NEAR(std::as_const(q).data<float>()[2 + action], 1, 0.1);
  }
}

class DqnForms : public testing::TestWithParam<std::string> {};

TEST_P(DqnForms, SolveThePolicyProbe) {
  EXPECT_EQ(ReturnOf(DqnOn("Probe-Policy-v0"), {GetParam()}), 1);
}

INSTANTIATE_TEST_SUITE_P(Switches, DqnForms,
                         testing::Values("double=false", "double=true", "dueling=true",
                                         "replay.n_step=3", "replay.prioritised=true",
                                         "replay.shared_frames=true"));

TEST(SacProbe, SolvesTheContinuousPolicyProbe) {
  EXPECT_GT(
      ReturnOf(
          "algorithm: sac\nseed: 1\ntotal_steps: 3000\nthreads: 1\n"
          "environment: {id: Probe-Policy-v0, arguments: {continuous: true}}\nlearning_rate: 3e-3\n"
          "replay: {capacity: 3000, batch_size: 64, min_size: 100}\nevaluation: {every: 1000000}\n"
          "network: {hidden: [32, 32]}\n"),
      0.95);
}

}  // namespace
}  // namespace weft
