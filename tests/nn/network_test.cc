#include "nn/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "nn/distribution_head.h"
#include "nn/optimizer.h"
#include "tensor/ops.h"
#include "tensor/tape.h"

namespace weft {
namespace {

TEST(Network, ConfigIsReadAndItsChoicesAreClosed) {
  NetworkConfig config;
  ConfigSource::Text("{hidden: [32], activation: relu, recurrent: gru, orthogonal: false}", "t")
      .Parse(config);
  EXPECT_EQ(config.hidden, std::vector<int64_t>{32});
  EXPECT_EQ(config.hidden_activation(), Activation::kRelu);
  EXPECT_EQ(config.head_initialisation(0.01).kind, Initialisation::Kind::kUniform);
  EXPECT_THROW(ConfigSource::Text("{activation: swish}", "t").Parse(config), Error);
  EXPECT_THROW(ConfigSource::Text("{hidden: [0]}", "t").Parse(config), Error);
}

TEST(Network, TrunkFlattensRowsAndNamesItsParameters) {
  NetworkConfig config;
  config.hidden = {5, 3};
  Rng rng(1, Purpose::kInitialise);
  Trunk trunk(config, {2, 2}, rng);
  EXPECT_EQ(trunk.out(), 3);
  std::vector<std::string> names;
  for (const NamedParameter& parameter : trunk.Parameters("policy.")) {
    names.emplace_back(parameter.name.text());
  }
  EXPECT_THAT(names, testing::ElementsAre("policy.hidden.0.weight", "policy.hidden.0.bias",
                                          "policy.hidden.1.weight", "policy.hidden.1.bias"));
  const Tensor x = Tensor::From<float>({1, 2, 2}, {1, 2, 3, 4});
  const Tensor a = trunk.Forward(x), b = trunk.Forward(x.Reshape({1, 4}));
  EXPECT_EQ(a.shape(), Shape({1, 3}));
  EXPECT_TRUE(std::ranges::equal(a.data<float>(), b.data<float>()));
  const Tensor doubles = trunk.Forward(Cast(x, DType::kFloat64));
  EXPECT_TRUE(std::ranges::equal(a.data<float>(), doubles.data<float>()));
}

TEST(Network, SequenceWithoutRecurrenceIsForwardOfAllRows) {
  Rng rng(1, Purpose::kInitialise);
  Trunk trunk(NetworkConfig(), {3}, rng);
  Tensor x = Tensor::Empty({2, 4, 3});
  rng.FillNormal(x.data<float>());
  RecurrentState state = trunk.InitialState(4);
  const Tensor sequence = trunk.Sequence(x, Tensor::Zeros({2, 4}, DType::kUInt8), state);
  EXPECT_EQ(sequence.shape(), Shape({2, 4, 64}));
  const Tensor row = trunk.Step(x.Row(1), Tensor::Zeros({4}, DType::kUInt8), state);
  EXPECT_TRUE(std::ranges::equal(row.data<float>(), sequence.Row(1).data<float>()));
}

TEST(Network, RecurrentTrunkNeedsItsState) {
  NetworkConfig config;
  config.recurrent = "lstm";
  config.recurrent_size = 7;
  config.recurrent_hidden = {5};
  Rng rng(1, Purpose::kInitialise);
  Trunk trunk(config, {3}, rng);
  EXPECT_EQ(trunk.out(), 5);
  EXPECT_THROW(trunk.Forward(Tensor::Zeros({1, 3})), Error);
  RecurrentState state = trunk.InitialState(2);
  const Tensor first = Tensor::Zeros({2}, DType::kUInt8);
  const Tensor x = Tensor::Full({2, 3}, 1);
  const Tensor before = trunk.Step(x, first, state);
  const Tensor after = trunk.Step(x, first, state);
  EXPECT_FALSE(std::ranges::equal(before.data<float>(), after.data<float>()));
}

// Acting, learning, publishing and averaging after warm-up.
TEST(Network, AStepThatRepeatsAsksTheSystemForNothing) {
  Rng rng(1, Purpose::kInitialise);
  NetworkConfig config;
  Trunk trunk(config, {4}, rng), target(config, {4}, rng);
  DistributionHead head({.kind = DistributionKind::kCategorical, .sizes = {2}}, trunk.out(),
                        Initialisation::Orthogonal(0.01), 0, rng);
  std::vector<NamedParameter> parameters = trunk.Parameters("trunk.");
  head.Collect("head.", parameters);
  Tape tape(Pointers(parameters));
  const std::vector<Tensor> handles = Handles(parameters);
  Optimizer optimizer(OptimizerConfig(), parameters);
  SnapshotPool pool(target.Parameters());
  Trunk actor(config, {4}, rng);
  std::vector<Rng> rngs;
  for (uint64_t row = 0; row < 8; ++row) rngs.emplace_back(1, Purpose::kAction, row);
  Tensor x = Tensor::Empty({8, 4});
  rng.FillNormal(x.data<float>());
  const auto step = [&] {
    const Distribution acting = head.Forward(trunk.Forward(x));
    const SampledAction sampled = acting.SampleWithLogProb(acting.Noise(rngs));
    const Tape::Recording recording(tape);
    const Distribution policy = head.Forward(trunk.Forward(x));
    const Tensor ratio = Exp(Sub(policy.LogProb(sampled.action), sampled.log_prob));
    optimizer.Step(tape.Gradient(Add(Mean(ratio), Mean(policy.Entropy())), handles), 1e-3, 0.5);
    LerpParameters(0.005f, trunk.Parameters(), target.Parameters());
    AdoptSnapshot(actor.Parameters(), pool.Take());
  };
  for (int i = 0; i < 3; ++i) step();
  const int64_t before = TensorAllocator().system_calls;
  for (int i = 0; i < 20; ++i) step();
  EXPECT_EQ(TensorAllocator().system_calls, before);
}

TEST(Network, PixelsGoThroughTheNatureCnn) {
  NetworkConfig config;
  config.hidden = {};
  Rng rng(1, Purpose::kInitialise);
  config.orthogonal = false;
  Trunk trunk(config, {4, 36, 40}, rng);
  EXPECT_EQ(trunk.out(), 512);
  EXPECT_EQ(trunk.Parameters()[0].name.text(), "cnn.conv1.weight");
  EXPECT_EQ(trunk.Forward(Tensor::Zeros({2, 4, 36, 40}, DType::kUInt8)).shape(), Shape({2, 512}));
}

}  // namespace
}  // namespace weft
