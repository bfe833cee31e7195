#include "nn/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "tests/nn/reference.h"

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
  Rng rng(1, Purpose::kInitialise);
  Trunk trunk(config, {3}, rng);
  EXPECT_EQ(trunk.out(), 7);
  EXPECT_THROW(trunk.Forward(Tensor::Zeros({1, 3})), Error);
  RecurrentState state = trunk.InitialState(2);
  const Tensor first = Tensor::Zeros({2}, DType::kUInt8);
  const Tensor x = Tensor::Full({2, 3}, 1);
  const Tensor before = trunk.Step(x, first, state);
  const Tensor after = trunk.Step(x, first, state);
  EXPECT_FALSE(std::ranges::equal(before.data<float>(), after.data<float>()));
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
