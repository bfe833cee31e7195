#include "nn/q_network.h"

#include <string>

#include "nn/onnx.h"
#include "tensor/ops.h"

namespace weft {

QNetwork::QNetwork(const NetworkConfig& config, const Shape& observation, int64_t actions,
                   bool dueling, Rng& rng)
    : trunk_(config, observation, rng),
      head_(trunk_.out(), actions, Activation::kNone, config.head_initialisation(1.0), rng) {
  if (dueling)
    value_head_.emplace(trunk_.out(), 1, Activation::kNone, config.head_initialisation(1.0), rng);
}

Tensor QNetwork::Forward(const Tensor& observation) const {
  const Tensor features = trunk_.Forward(observation);  // [B, F]
  const Tensor q = head_.Forward(features);             // [B, A]
  if (!value_head_) return q;
  const int64_t rows = q.dim(0), actions = q.dim(1);
  const Tensor mean = Reshape(Scale(SumLast(q), 1.0f / static_cast<float>(actions)), {rows, 1});
  return Add(Sub(q, mean), value_head_->Forward(features));
}

std::string QNetwork::Export(OnnxGraph& graph, const std::string& x) const {
  OnnxState none;
  const std::string features = trunk_.Export(graph, "q.", x, none);
  const std::string q = head_.Export(graph, "q.head.", features);
  if (!value_head_) return q;
  const std::string mean = graph.Node("ReduceMean", {q}, {{"axes", std::vector<int64_t>{1}}});
  return graph.Node(
      "Add", {graph.Node("Sub", {q, mean}), value_head_->Export(graph, "q.value_head.", features)});
}

void QNetwork::Collect(std::string_view prefix, std::vector<NamedParameter>& out) {
  const std::string at(prefix);
  trunk_.Collect(at + "q.", out);
  head_.Collect(at + "q.head.", out);
  if (value_head_) value_head_->Collect(at + "q.value_head.", out);
}

Tensor AllowedValues(const Tensor& q, const Tensor& mask) {
  return mask.defined() ? Select(mask, q, Tensor::Full(q.shape(), -1e30)) : q;
}

ContinuousQNetwork::ContinuousQNetwork(const NetworkConfig& config, int64_t observation,
                                       int64_t actions, Rng& rng)
    : trunk_(config, {observation + actions}, rng),
      head_(trunk_.out(), 1, Activation::kNone, config.head_initialisation(1.0), rng) {}

Tensor ContinuousQNetwork::Forward(const Tensor& observation, const Tensor& action) const {
  const Tensor inputs[] = {observation, action};
  const Tensor q = head_.Forward(trunk_.Forward(ConcatLast(inputs)));  // [B, 1]
  return Reshape(q, {q.dim(0)});
}

void ContinuousQNetwork::Collect(std::string_view prefix, std::vector<NamedParameter>& out) {
  const std::string at(prefix);
  trunk_.Collect(at + "q.", out);
  head_.Collect(at + "q.head.", out);
}

}  // namespace weft
