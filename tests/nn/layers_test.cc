#include "nn/layers.h"

#include <array>
#include <gtest/gtest.h>

#include "base/check.h"
#include "tests/nn/gradients.h"
#include "tests/nn/reference.h"

namespace weft {
namespace {

constexpr double kRelative = 1e-5, kAbsolute = 1e-5;

// d sum(output * cotangent) / d (each parameter of the module, then x).
template <class Forward>
std::vector<Tensor> LayerGradients(Module& module, Tensor& x, const Tensor& cotangent,
                                   const Forward& forward, Tensor* output) {
  std::vector<Tensor*> places = Pointers(module.Parameters());
  places.push_back(&x);
  return Gradients(places, [&] {
    *output = forward(x);
    return Sum(Mul(*output, cotangent));
  });
}

TEST(Linear, EqualsReferenceWithGradients) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap data = ReadSafetensors(ReferencePath("language/maths/layers_dense.safetensors"));
  for (const std::string name : {"linear.", "linear_large."}) {
    const Tensor& w = data.At(name + "w");
    Rng rng(1, Purpose::kTest);
    Linear linear(w.dim(1), w.dim(0), Activation::kNone, Initialisation::Zero(), rng);
    TensorMap state;
    state.Set("weight", Transposed(w));
    const Tensor* b = data.Find(name + "b");
    state.Set("bias", b ? *b : Tensor::Zeros({w.dim(0)}));
    LoadState(linear.Parameters(), state);
    Tensor x = data.At(name + "x").Clone(), output;
    const auto gradients = LayerGradients(
        linear, x, data.At(name + "cotangent"),
        [&](const Tensor& in) { return linear.Forward(in); }, &output);
    ExpectClose(output, data.At(name + "output"), kRelative, kAbsolute, name);
    ExpectClose(gradients[0], Transposed(data.At(name + "grad.w")), kRelative, kAbsolute, "d_w");
    if (b) ExpectClose(gradients[1], data.At(name + "grad.b"), kRelative, kAbsolute, "d_b");
    ExpectClose(gradients[2], data.At(name + "grad.x"), kRelative, kAbsolute, "d_x");
  }
}

TEST(LayerNormalisation, EqualsReferenceWithGradients) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap data = ReadSafetensors(ReferencePath("language/maths/layers_dense.safetensors"));
  for (const std::string name : {"layernorm.", "layernorm_large_offset."}) {
    LayerNormalisation norm(12);
    TensorMap state;
    state.Set("gamma", data.At(name + "w"));
    state.Set("beta", data.At(name + "b"));
    LoadState(norm.Parameters(), state);
    Tensor x = data.At(name + "x").Clone(), output;
    const auto gradients = LayerGradients(
        norm, x, data.At(name + "cotangent"), [&](const Tensor& in) { return norm.Forward(in); },
        &output);
    // Around 1000 the rounding of the input itself is amplified.
    const bool offset = name != "layernorm.";
    ExpectClose(output, data.At(name + "output"), kRelative, offset ? 5e-2 : kAbsolute, name);
    if (offset) continue;
    ExpectClose(gradients[0], data.At(name + "grad.w"), kRelative, kAbsolute, "d_gamma");
    ExpectClose(gradients[1], data.At(name + "grad.b"), kRelative, kAbsolute, "d_beta");
    ExpectClose(gradients[2], data.At(name + "grad.x"), kRelative, kAbsolute, "d_x");
  }
}

TEST(Convolution, EqualsReferenceWithGradients) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap data = ReadSafetensors(ReferencePath("language/maths/layers_dense.safetensors"));
  const std::array<std::array<int64_t, 2>, 3> stride_and_pad = {{{4, 0}, {2, 0}, {1, 1}}};
  for (size_t i = 0; i < 3; ++i) {
    const std::string name = "conv2d." + std::to_string(i) + ".";
    const Tensor& w = data.At(name + "w");
    Rng rng(1, Purpose::kTest);
    Convolution convolution(w.dim(1), w.dim(0), w.dim(2), stride_and_pad[i][0],
                            stride_and_pad[i][1], Activation::kNone, Initialisation::Zero(), rng);
    TensorMap state;
    state.Set("weight", Transposed(w));
    state.Set("bias", data.At(name + "b"));
    LoadState(convolution.Parameters(), state);
    Tensor x = data.At(name + "x").Clone(), output;
    const auto gradients = LayerGradients(
        convolution, x, data.At(name + "cotangent"),
        [&](const Tensor& in) { return convolution.Forward(in); }, &output);
    EXPECT_EQ(output.dim(2), convolution.OutputSize(x.dim(2)));
    // Sums of some hundred terms of order 1.
    ExpectClose(output, data.At(name + "output"), kRelative, 1e-4, name);
    ExpectClose(gradients[0], Transposed(data.At(name + "grad.w")), kRelative, 1e-4, "d_w");
    ExpectClose(gradients[1], data.At(name + "grad.b"), kRelative, 1e-4, "d_b");
    ExpectClose(gradients[2], data.At(name + "grad.x"), kRelative, 1e-4, "d_x");
  }
}

TEST(NatureCnn, FeaturesEqualReferenceFromBytesAndFromFloats) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap data =
      ReadSafetensors(ReferencePath("language/maths/layers_naturecnn.safetensors"));
  Rng rng(1, Purpose::kTest);
  NatureCnn cnn(4, 84, 84, 8, Initialisation::Uniform(), rng);
  TensorMap state = CopyState(cnn.Parameters());
  for (const std::string i : {"1", "2", "3"}) {
    state.Set("conv" + i + ".weight", Transposed(data.At("w" + i)));
    state.Set("conv" + i + ".bias", data.At("b" + i));
  }
  LoadState(cnn.Parameters(), state);
  const Tensor& bytes = data.At("obs_u8");
  const Tensor features = cnn.Convolutions(bytes);
  EXPECT_EQ(features.shape(), Shape({1, 3136}));
  ExpectClose(features, data.At("features"), kRelative, kAbsolute, "features");
  const Tensor floats = cnn.Convolutions(Cast(bytes, DType::kFloat32));
  EXPECT_TRUE(std::ranges::equal(floats.data<float>(), features.data<float>()));
  EXPECT_EQ(cnn.Forward(bytes).shape(), Shape({1, 8}));
}

TEST(NatureCnn, GradientsEqualReference) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap data =
      ReadSafetensors(ReferencePath("language/maths/layers_naturecnn.safetensors"));
  Rng rng(1, Purpose::kTest);
  NatureCnn cnn(4, 84, 84, 8, Initialisation::Uniform(), rng);
  TensorMap state = CopyState(cnn.Parameters());
  for (const std::string i : {"1", "2", "3"}) {
    state.Set("conv" + i + ".weight", Transposed(data.At("w" + i)));
    state.Set("conv" + i + ".bias", data.At("b" + i));
  }
  LoadState(cnn.Parameters(), state);
  const auto gradients = Gradients(Pointers(cnn.Parameters()),
                                   [&] { return Sum(cnn.Convolutions(data.At("obs_u8"))); });
  for (size_t layer = 0; layer < 3; ++layer) {
    const std::string i = std::to_string(layer + 1);
    // Only the first eight inputs of every filter are in the reference.
    const Tensor d_w = gradients[2 * layer].ToLayout(Layout::kRowMajor).Slice(0, 8);
    ExpectClose(d_w, Transposed(data.At("grad.w" + i)), 1e-4, 1e-3, "d_w" + i);
    ExpectClose(gradients[2 * layer + 1], data.At("grad.b" + i), 1e-4, 1e-3, "d_b" + i);
  }
}

TEST(NatureCnn, RefusesImagesThatAreTooSmall) {
  Rng rng(1, Purpose::kTest);
  EXPECT_THROW(NatureCnn(4, 35, 84, 8, Initialisation::Uniform(), rng), Error);
}

TEST(Mlp, ComputesByHand) {
  Rng rng(1, Purpose::kTest);
  const std::array<int64_t, 2> hidden = {2, 1};
  Mlp mlp(1, hidden, Activation::kRelu, /*layer_norm=*/false, Initialisation::Zero(), rng);
  TensorMap state;
  state.Set("0.weight", Tensor::From<float>({1, 2}, {2, -1}));
  state.Set("0.bias", Tensor::From<float>({2}, {1, 0}));
  state.Set("1.weight", Tensor::From<float>({2, 1}, {3, 5}));
  state.Set("1.bias", Tensor::From<float>({1}, {-4}));
  LoadState(mlp.Parameters(), state);
  // x = 2: h = (5, 0), 15 - 4 = 11; x = -2: h = (0, 2), 10 - 4 = 6.
  const Tensor y = mlp.Forward(Tensor::From<float>({2, 1}, {2, -2}));
  EXPECT_EQ(y.data<float>()[0], 11);
  EXPECT_EQ(y.data<float>()[1], 6);
}

TEST(Mlp, LayerNormStandsBeforeTheActivation) {
  Rng rng(1, Purpose::kTest);
  const std::array<int64_t, 1> hidden = {2};
  Mlp mlp(1, hidden, Activation::kRelu, /*layer_norm=*/true, Initialisation::Zero(), rng);
  TensorMap state = CopyState(mlp.Parameters());
  ASSERT_TRUE(state.Has("0.norm.gamma"));
  state.Set("0.weight", Tensor::From<float>({1, 2}, {100, 300}));
  LoadState(mlp.Parameters(), state);
  // (100, 300) has mean 200 and deviation 100.
  const Tensor y = mlp.Forward(Tensor::From<float>({1, 1}, {1}));
  EXPECT_EQ(y.data<float>()[0], 0);
  EXPECT_NEAR(static_cast<double>(y.data<float>()[1]), 1, 1e-6);
}

TEST(Mlp, WithoutHiddenLayersIsTheIdentity) {
  Rng rng(1, Purpose::kTest);
  Mlp mlp(3, {}, Activation::kTanh, /*layer_norm=*/false, Initialisation::Zero(), rng);
  EXPECT_EQ(mlp.out(), 3);
  EXPECT_TRUE(mlp.Parameters().empty());
  const Tensor x = Tensor::From<float>({1, 3}, {1, 2, 3});
  EXPECT_EQ(mlp.Forward(x).raw(), x.raw());
}

}  // namespace
}  // namespace weft
