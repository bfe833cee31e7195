// How each module is written as ONNX. The arithmetic is f32 and in the operators' own order:
// results agree with ours to rounding, not to the bit.
#include <cmath>
#include <string>

#include "base/check.h"
#include "nn/distribution_head.h"
#include "nn/layers.h"
#include "nn/network.h"
#include "nn/onnx.h"
#include "nn/recurrent.h"
#include "nn/running_statistics.h"

namespace weft {
namespace {

std::string Apply(OnnxGraph& graph, Activation activation, const std::string& x) {
  switch (activation) {
    case Activation::kTanh:
      return graph.Node("Tanh", {x});
    case Activation::kRelu:
      return graph.Node("Relu", {x});
    case Activation::kSigmoid:
      return graph.Node("Sigmoid", {x});
    case Activation::kNone:
      break;
  }
  return x;
}

std::string Path(std::string_view prefix, std::string_view name) {
  return std::string(prefix) + std::string(name);
}

// x w + b for x [batch, in]; bias may be undefined.
std::string Gemm(OnnxGraph& graph, std::string_view prefix, const std::string& x,
                 const Tensor& weight, const Tensor& bias) {
  std::vector<std::string> inputs = {x, graph.Constant(Path(prefix, "weight"), weight)};
  if (bias.defined()) inputs.push_back(graph.Constant(Path(prefix, "bias"), bias));
  return graph.Node("Gemm", inputs);
}

std::vector<std::string> SplitLast(OnnxGraph& graph, const std::string& x, size_t parts) {
  return graph.Nodes("Split", {x}, parts, {{"axis", int64_t{1}}});
}

// [filters, C, k, k] of our [C * k * k, filters].
Tensor FilterTensor(const Tensor& weight, int64_t kernel) {
  const Tensor rows = weight.ToLayout(Layout::kRowMajor);
  const int64_t inputs = rows.dim(0), filters = rows.dim(1);
  Tensor result = Tensor::Empty({filters, inputs / (kernel * kernel), kernel, kernel});
  for (int64_t i = 0; i < inputs; ++i) {
    for (int64_t f = 0; f < filters; ++f) {
      result.data<float>()[static_cast<size_t>(f * inputs + i)] =
          rows.data<float>()[static_cast<size_t>(i * filters + f)];
    }
  }
  return result;
}

}  // namespace

std::string Linear::Export(OnnxGraph& graph, std::string_view prefix, const std::string& x) const {
  return Apply(graph, activation_, Gemm(graph, prefix, x, weight_, bias_));
}

std::string LayerNormalisation::Export(OnnxGraph& graph, std::string_view prefix,
                                       const std::string& x) const {
  return graph.Node("LayerNormalization",
                    {x, graph.Constant(Path(prefix, "gamma"), gamma_),
                     graph.Constant(Path(prefix, "beta"), beta_)},
                    {{"axis", int64_t{-1}}, {"epsilon", 1e-5f}});
}

std::string Mlp::Export(OnnxGraph& graph, std::string_view prefix, const std::string& x) const {
  std::string h = x;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const std::string layer = Path(prefix, std::to_string(i)) + ".";
    h = layers_[i].Export(graph, layer, h);
    if (norms_.empty()) continue;
    h = Apply(graph, activation_, norms_[i].Export(graph, layer + "norm.", h));
  }
  return h;
}

std::string Convolution::Export(OnnxGraph& graph, std::string_view prefix,
                                const std::string& x) const {
  const std::string y =
      graph.Node("Conv",
                 {x, graph.Constant(Path(prefix, "weight"), FilterTensor(weight_, kernel_)),
                  graph.Constant(Path(prefix, "bias"), bias_)},
                 {{"strides", std::vector<int64_t>{stride_, stride_}},
                  {"pads", std::vector<int64_t>{pad_, pad_, pad_, pad_}}});
  return Apply(graph, activation_, y);
}

std::string NatureCnn::Export(OnnxGraph& graph, std::string_view prefix,
                              const std::string& x) const {
  std::string h = graph.Node("Cast", {x}, {{"to", int64_t{1}}});
  h = graph.Node("Mul", {h, graph.Scalar(1.0f / 255)});
  h = conv1_.Export(graph, Path(prefix, "conv1."), h);
  h = conv2_.Export(graph, Path(prefix, "conv2."), h);
  h = conv3_.Export(graph, Path(prefix, "conv3."), h);
  h = graph.Node("Flatten", {h}, {{"axis", int64_t{1}}});
  return dense_.Export(graph, Path(prefix, "dense."), h);
}

std::string Lstm::ExportStep(OnnxGraph& graph, std::string_view prefix, const std::string& x,
                             OnnxState& state) const {
  const std::string gates = graph.Node(
      "Add", {Gemm(graph, Path(prefix, "input."), x, input_weight_, bias_),
              Gemm(graph, Path(prefix, "hidden."), state.hidden, hidden_weight_, Tensor())});
  const auto parts = SplitLast(graph, gates, 4);  // i f g o
  const std::string kept = graph.Node("Mul", {graph.Node("Sigmoid", {parts[1]}), state.cell});
  const std::string added =
      graph.Node("Mul", {graph.Node("Sigmoid", {parts[0]}), graph.Node("Tanh", {parts[2]})});
  state.cell = graph.Node("Add", {kept, added});
  state.hidden =
      graph.Node("Mul", {graph.Node("Sigmoid", {parts[3]}), graph.Node("Tanh", {state.cell})});
  return state.hidden;
}

std::string Gru::ExportStep(OnnxGraph& graph, std::string_view prefix, const std::string& x,
                            OnnxState& state) const {
  const auto from_x = SplitLast(
      graph, Gemm(graph, Path(prefix, "input."), x, input_weight_, input_bias_), 3);  // r z n
  const auto from_h = SplitLast(
      graph, Gemm(graph, Path(prefix, "hidden."), state.hidden, hidden_weight_, hidden_bias_), 3);
  const std::string reset = graph.Node("Sigmoid", {graph.Node("Add", {from_x[0], from_h[0]})});
  const std::string update = graph.Node("Sigmoid", {graph.Node("Add", {from_x[1], from_h[1]})});
  const std::string candidate =
      graph.Node("Tanh", {graph.Node("Add", {from_x[2], graph.Node("Mul", {reset, from_h[2]})})});
  const std::string fresh =
      graph.Node("Mul", {graph.Node("Sub", {graph.Scalar(1), update}), candidate});
  state.hidden = graph.Node("Add", {fresh, graph.Node("Mul", {update, state.hidden})});
  return state.hidden;
}

std::string Trunk::Export(OnnxGraph& graph, std::string_view prefix, const std::string& x,
                          OnnxState& state) const {
  std::string h = cnn_ ? cnn_->Export(graph, Path(prefix, "cnn."), x)
                       : graph.Node("Flatten", {x}, {{"axis", int64_t{1}}});
  h = mlp_->Export(graph, Path(prefix, "hidden."), h);
  if (!recurrent_) return h;
  h = recurrent_->ExportStep(graph, Path(prefix, "recurrent."), h, state);
  return after_->Export(graph, Path(prefix, "recurrent.hidden."), h);
}

std::string DistributionHead::ExportMode(OnnxGraph& graph, std::string_view prefix,
                                         const std::string& features,
                                         const std::string& penalty) const {
  std::string output = linear_.Export(graph, prefix, features);
  if (!penalty.empty()) output = graph.Node("Add", {output, penalty});
  const std::vector<OnnxGraph::Attribute> last = {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}};
  switch (spec_.kind) {
    case DistributionKind::kCategorical:
      return graph.Node("ArgMax", {output}, last);
    case DistributionKind::kMultiCategorical: {
      const Tensor sizes = Tensor::From<int64_t>({static_cast<int64_t>(spec_.sizes.size())},
                                                 std::span<const int64_t>(spec_.sizes));
      const std::string split = graph.Constant(Path(prefix, "sizes"), sizes);
      std::vector<std::string> choices;
      for (const std::string& part :
           graph.Nodes("Split", {output, split}, spec_.sizes.size(), {{"axis", int64_t{1}}})) {
        choices.push_back(
            graph.Node("ArgMax", {part}, {{"axis", int64_t{1}}, {"keepdims", int64_t{1}}}));
      }
      return graph.Node("Concat", choices, {{"axis", int64_t{1}}});
    }
    case DistributionKind::kBernoulli:
      return graph.Node("Cast", {graph.Node("Greater", {output, graph.Scalar(0)})},
                        {{"to", int64_t{7}}});
    case DistributionKind::kGaussian:
    case DistributionKind::kSquashedGaussian: {
      const std::string mean =
          spec_.state_dependent_std ? SplitLast(graph, output, 2).front() : output;
      return spec_.kind == DistributionKind::kGaussian ? mean : graph.Node("Tanh", {mean});
    }
  }
  return output;
}

std::string RunningStatistics::ExportNormalise(OnnxGraph& graph, std::string_view prefix,
                                               const std::string& x, double clip,
                                               double epsilon) const {
  Tensor mean = Tensor::Empty({features()}), deviation = Tensor::Empty({features()});
  for (size_t i = 0; i < mean_.size(); ++i) {
    mean.data<float>()[i] = static_cast<float>(mean_[i]);
    deviation.data<float>()[i] = static_cast<float>(std::sqrt(variance_[i] + epsilon));
  }
  const std::string centred = graph.Node("Sub", {x, graph.Constant(Path(prefix, "mean"), mean)});
  const std::string scaled =
      graph.Node("Div", {centred, graph.Constant(Path(prefix, "deviation"), deviation)});
  const auto limit = static_cast<float>(clip);
  return graph.Node("Clip", {scaled, graph.Scalar(-limit), graph.Scalar(limit)});
}

}  // namespace weft
