// Outputs and gradients of layers against the reference data computed in double by another program.
#include <gtest/gtest.h>
#include <string>
#include <tuple>
#include <vector>

#include "tests/nn/reference.h"
#include "tests/tensor/gradient_check.h"

namespace weft {
namespace {

using Inputs = std::span<const Tensor>;

constexpr double kRelative = 1e-5, kAbsolute = 1e-6;  // reference/language/README.md, "layers"

TensorMap Reference(const char* topic) {
  return ReadSafetensors(ReferencePath(std::string("language/maths/") + topic + ".safetensors"));
}

Tensor WeightOf(const Tensor& torch) {
  return Transposed(torch).ToLayout(Layout::kPanels);
}

// Runs function on the parameters, weights its output with the case's cotangent and compares output
// and gradients; a matrix of the reference is the transpose of ours.
void ExpectCase(const TensorMap& reference, const std::string& name,
                const std::vector<Tensor>& parameters,
                const std::vector<std::string>& gradient_names, const Loss& function,
                double scale = 1) {
  SCOPED_TRACE(name);
  const TensorMap data = reference.Extract(name);
  ExpectClose(function(parameters), data.At("output"), kRelative * scale, kAbsolute * scale,
              "output");
  const auto gradients = GradientsOf(
      parameters,
      [&](Inputs p) {
        const Tensor y = function(p);
        return Sum(Mul(y, Reshape(data.At("cotangent"), y.shape())));
      },
      true);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Tensor& expected = data.At("grad." + gradient_names[i]);
    const bool matrix = gradients[i].layout() == Layout::kPanels;
    ExpectClose(gradients[i], matrix ? Transposed(expected) : expected, kRelative * scale,
                kAbsolute * scale, gradient_names[i]);
  }
}

TEST(OpsReference, DenseLayers) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap reference = Reference("layers_dense");
  ExpectCase(
      reference, "linear",
      {reference.At("linear.x"), WeightOf(reference.At("linear.w")), reference.At("linear.b")},
      {"x", "w", "b"}, [](Inputs p) { return Dense(p[0], p[1], p[2]); });
  ExpectCase(reference, "linear_large",
             {reference.At("linear_large.x"), WeightOf(reference.At("linear_large.w"))}, {"x", "w"},
             [](Inputs p) { return Dense(p[0], p[1], Tensor()); });
}

TEST(OpsReference, Convolutions) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap reference = Reference("layers_dense");
  const struct {
    const char* name;
    int64_t kernel, stride, pad;
  } cases[] = {{"conv2d.0", 8, 4, 0}, {"conv2d.1", 4, 2, 0}, {"conv2d.2", 3, 1, 1}};
  for (const auto& [name, kernel, stride, pad] : cases) {
    const TensorMap data = reference.Extract(name);
    // Sums of 256 products of order 1 in one float32 accumulator: twice the bar.
    ExpectCase(
        reference, name, {data.At("x"), WeightOf(data.At("w")), data.At("b")}, {"x", "w", "b"},
        [=](Inputs p) { return Conv2d(p[0], p[1], p[2], kernel, stride, pad); }, 2);
  }
}

TEST(OpsReference, LayerNorms) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap reference = Reference("layers_dense");
  const TensorMap plain = reference.Extract("layernorm");
  const Loss function = [](Inputs p) { return LayerNorm(p[0], p[1], p[2]); };
  ExpectCase(reference, "layernorm", {plain.At("x"), plain.At("w"), plain.At("b")}, {"x", "w", "b"},
             function);
  // Mean 1000, deviation 0.01: the reference's own bar for float32 inputs.
  const TensorMap offset = reference.Extract("layernorm_large_offset");
  ExpectClose(LayerNorm(offset.At("x"), offset.At("w"), offset.At("b")), offset.At("output"), 0,
              5e-2, "large offset");
}

TEST(OpsReference, Activations) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap reference = Reference("layers_activations");
  const struct {
    const char* name;
    Unary op;
  } cases[] = {{"gelu_tanh", Unary::kGelu},    {"silu", Unary::kSilu},
               {"elu", Unary::kElu},           {"relu", Unary::kRelu},
               {"softplus", Unary::kSoftplus}, {"sigmoid", Unary::kSigmoid},
               {"tanh", Unary::kTanh}};
  for (const auto& [name, op] : cases) {
    SCOPED_TRACE(name);
    const TensorMap data = reference.Extract(name);
    ExpectClose(Apply(op, data.At("x")), data.At("y"), kRelative, kAbsolute, "y");
    const auto gradient = GradientsOf(
        {data.At("x")}, [&](Inputs p) { return Sum(Apply(op, p[0])); }, true);
    ExpectClose(gradient[0], data.At("dy_dx"), kRelative, kAbsolute, "dy_dx");
  }
  const TensorMap extreme = reference.Extract("softmax_extreme");
  ExpectClose(Softmax(extreme.At("x")), extreme.At("softmax"), kRelative, kAbsolute, "softmax");
  ExpectClose(LogSoftmax(extreme.At("x")), extreme.At("log_softmax"), kRelative, kAbsolute,
              "log_softmax");
}

TEST(OpsReference, RecurrentLayersWithResets) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap reference = Reference("layers_recurrent");
  const Tensor done = Cast(reference.At("reset_flags.done"), DType::kFloat32);  // [T, B]
  for (const bool lstm : {true, false}) {
    for (const bool reset : {false, true}) {
      const std::string name = std::string(lstm ? "lstm" : "gru") + (reset ? "_reset" : "");
      const TensorMap data = reference.Extract(name);
      const int64_t steps = data.At("x").dim(0), rows = data.At("x").dim(1);
      std::vector<Tensor> parameters = {
          data.At("x"),    data.At("h0"),  WeightOf(data.At("w_ih")), WeightOf(data.At("w_hh")),
          data.At("b_ih"), data.At("b_hh")};
      std::vector<std::string> names = {"x", "h0", "w_ih", "w_hh", "b_ih", "b_hh"};
      if (lstm) {
        parameters.push_back(data.At("c0"));
        names.emplace_back("c0");
      }
      ExpectCase(reference, name, parameters, names, [&](Inputs p) {
        Tensor h = p[1], c = lstm ? p[6] : Tensor();
        std::vector<Tensor> outputs;
        for (int64_t t = 0; t < steps; ++t) {
          if (reset) {
            const Tensor keep = Affine(done.Row(t).Reshape({rows, 1}), -1, 1);
            h = Mul(h, keep);
            if (lstm) c = Mul(c, keep);
          }
          const Tensor x = Reshape(SliceRows(p[0], t, t + 1), {rows, p[0].dim(2)});
          const Tensor from_x = Dense(x, p[2], p[4]), from_h = Dense(h, p[3], p[5]);
          if (lstm) {
            std::tie(h, c) = LstmCell(Add(from_x, from_h), c);
          } else {
            h = GruCell(from_x, from_h, h);
          }
          outputs.push_back(h);
        }
        return StackRows(outputs);
      });
    }
  }
}

TEST(OpsReference, NatureCnn) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap data = Reference("layers_naturecnn");
  const Tensor x = Scale(Cast(data.At("obs_u8"), DType::kFloat32), 1.0f / 255);
  const std::vector<Tensor> parameters = {WeightOf(data.At("w1")), data.At("b1"),
                                          WeightOf(data.At("w2")), data.At("b2"),
                                          WeightOf(data.At("w3")), data.At("b3")};
  const Loss features = [&](Inputs p) {
    Tensor h = Conv2d(x, p[0], p[1], 8, 4, 0, Activation::kRelu);
    h = Conv2d(h, p[2], p[3], 4, 2, 0, Activation::kRelu);
    return Conv2d(h, p[4], p[5], 3, 1, 0, Activation::kRelu);
  };
  // The expectation is float32 itself, hence a tenfold bar.
  ExpectClose(features(parameters), data.At("features"), 1e-4, 1e-5, "features");
  const auto gradients = GradientsOf(
      parameters, [&](Inputs p) { return Sum(features(p)); }, true);
  const char* names[] = {"w1", "b1", "w2", "b2", "w3", "b3"};
  for (size_t i = 0; i < 6; ++i) {
    const Tensor& expected = data.At(std::string("grad.") + names[i]);
    // Of a weight the first 8 inputs of every output channel are kept.
    const Tensor actual =
        gradients[i].layout() == Layout::kPanels
            ? Transposed(SliceRows(gradients[i].ToLayout(Layout::kRowMajor), 0, 8))
            : gradients[i];
    ExpectClose(actual, expected, 1e-4, 1e-4, names[i]);
  }
}

}  // namespace
}  // namespace weft
