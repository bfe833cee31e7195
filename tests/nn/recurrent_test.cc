#include "nn/recurrent.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "tensor/ops.h"
#include "tests/nn/gradients.h"
#include "tests/nn/reference.h"

namespace weft {
namespace {

constexpr double kRelative = 1e-5, kAbsolute = 2e-6;

// Output, last state and gradients of one case against torch's, whose two biases are one in our
// Lstm.
void ExpectReference(const std::string& name, bool reset) {
  const TensorMap data =
      ReadSafetensors(ReferencePath("language/maths/layers_recurrent.safetensors"));
  const auto at = [&](const std::string& key) { return data.At(name + "." + key); };
  const bool lstm = name.starts_with("lstm");
  Rng rng(1, Purpose::kTest);
  std::unique_ptr<Recurrent> layer;
  TensorMap state;
  state.Set("input.weight", Transposed(at("w_ih")));
  state.Set("hidden.weight", Transposed(at("w_hh")));
  if (lstm) {
    layer = std::make_unique<Lstm>(5, 4, Initialisation::Zero(), rng);
    state.Set("input.bias", Add(at("b_ih"), at("b_hh")));
  } else {
    layer = std::make_unique<Gru>(5, 4, Initialisation::Zero(), rng);
    state.Set("input.bias", at("b_ih"));
    state.Set("hidden.bias", at("b_hh"));
  }
  LoadState(layer->Parameters(), state);

  Tensor x = at("x").Clone();
  RecurrentState start{.hidden = at("h0").Clone(), .cell = lstm ? at("c0").Clone() : Tensor()};
  std::vector<Tensor*> places = Pointers(layer->Parameters());
  places.push_back(&x);
  places.push_back(&start.hidden);
  if (lstm) places.push_back(&start.cell);
  const Tensor first = reset ? data.At("reset_flags.done") : Tensor::Zeros({6, 3}, DType::kUInt8);
  RecurrentState last;
  const auto gradients = Gradients(places, [&] {
    last = start;
    const Tensor output = layer->Sequence(x, first, last);
    ExpectClose(output, at("output"), kRelative, kAbsolute, name);
    return Sum(Mul(output, at("cotangent")));
  });
  ExpectClose(last.hidden, at("h_last"), kRelative, kAbsolute, name + " h_last");
  if (lstm) ExpectClose(last.cell, at("c_last"), kRelative, kAbsolute, name + " c_last");
  const auto expect = [&](const std::string& parameter, const Tensor& expected) {
    const auto parameters = layer->Parameters();
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].name == TensorName(parameter)) {
        ExpectClose(gradients[i], expected, kRelative, kAbsolute, name + " d " + parameter);
        return;
      }
    }
    FAIL() << parameter;
  };
  expect("input.weight", Transposed(at("grad.w_ih")));
  expect("hidden.weight", Transposed(at("grad.w_hh")));
  expect("input.bias", at("grad.b_ih"));
  if (!lstm) expect("hidden.bias", at("grad.b_hh"));
  const size_t inputs = layer->Parameters().size();
  ExpectClose(gradients[inputs], at("grad.x"), kRelative, kAbsolute, name + " d_x");
  ExpectClose(gradients[inputs + 1], at("grad.h0"), kRelative, kAbsolute, name + " d_h0");
  if (lstm) ExpectClose(gradients[inputs + 2], at("grad.c0"), kRelative, kAbsolute, name + " d_c0");
}

TEST(Recurrent, LstmEqualsReference) {
  WEFT_REQUIRE_REFERENCE();
  ExpectReference("lstm", /*reset=*/false);
  ExpectReference("lstm_reset", /*reset=*/true);
}

TEST(Recurrent, GruEqualsReference) {
  WEFT_REQUIRE_REFERENCE();
  ExpectReference("gru", /*reset=*/false);
  ExpectReference("gru_reset", /*reset=*/true);
}

template <class Layer>
void ExpectStepsEqualSequence() {
  constexpr int64_t kSteps = 7, kRows = 5, kIn = 6, kHidden = 8;
  Rng rng(1, Purpose::kTest);
  const Layer layer(kIn, kHidden, Initialisation::Uniform(), rng);
  Tensor x = Tensor::Empty({kSteps, kRows, kIn});
  rng.FillNormal(x.data<float>());
  Tensor first = Tensor::Zeros({kSteps, kRows}, DType::kUInt8);
  for (uint8_t& flag : first.data<uint8_t>()) flag = rng.Below(4) == 0 ? 1 : 0;
  RecurrentState whole = layer.InitialState(kRows), stepped = layer.InitialState(kRows);
  const Tensor sequence = layer.Sequence(x, first, whole);
  for (int64_t t = 0; t < kSteps; ++t) {
    const Tensor h = layer.Step(x.Row(t), first.Row(t), stepped);
    EXPECT_TRUE(std::ranges::equal(h.data<float>(), sequence.Row(t).data<float>())) << t;
  }
  EXPECT_TRUE(std::ranges::equal(whole.hidden.data<float>(), stepped.hidden.data<float>()));
  // One row alone gives the bits of that row in the batch.
  RecurrentState alone = layer.InitialState(1);
  for (int64_t t = 0; t < kSteps; ++t) {
    const Tensor h = layer.Step(x.Row(t).Slice(3, 4), first.Row(t).Slice(3, 4), alone);
    EXPECT_TRUE(std::ranges::equal(h.data<float>(), sequence.Row(t).Slice(3, 4).data<float>()));
  }
}

TEST(Recurrent, StepsEqualTheSequenceBitForBit) {
  ExpectStepsEqualSequence<Lstm>();
  ExpectStepsEqualSequence<Gru>();
}

TEST(Recurrent, FirstForgetsEverythingBefore) {
  Rng rng(2, Purpose::kTest);
  const Lstm layer(2, 3, Initialisation::Uniform(), rng);
  const Tensor x = Tensor::From<float>({1, 2}, {0.5f, -1});
  RecurrentState fresh = layer.InitialState(1);
  RecurrentState used{.hidden = Tensor::Full({1, 3}, 5), .cell = Tensor::Full({1, 3}, -7)};
  const Tensor first = Tensor::Full({1}, 1, DType::kUInt8);
  const Tensor a = layer.Step(x, first, fresh), b = layer.Step(x, first, used);
  EXPECT_TRUE(std::ranges::equal(a.data<float>(), b.data<float>()));
}

TEST(Recurrent, RefusesFlagsOfAnotherShape) {
  Rng rng(3, Purpose::kTest);
  const Gru layer(2, 3, Initialisation::Uniform(), rng);
  RecurrentState state = layer.InitialState(4);
  EXPECT_THROW(layer.Step(Tensor::Zeros({4, 2}), Tensor::Zeros({3}, DType::kUInt8), state), Error);
  EXPECT_THROW(
      layer.Sequence(Tensor::Zeros({2, 4, 2}), Tensor::Zeros({4, 2}, DType::kUInt8), state), Error);
}

}  // namespace
}  // namespace weft
