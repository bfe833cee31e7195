#include "environments/action_map.h"

#include <algorithm>

#include "nn/onnx.h"

namespace weft {

DistributionSpec DistributionFor(const Space& space, bool squashed, bool state_dependent_std) {
  DistributionSpec spec{.kind = {}, .sizes = {}, .state_dependent_std = state_dependent_std};
  if (const auto* discrete = space.As<Discrete>()) {
    spec.kind = DistributionKind::kCategorical;
    spec.sizes = {discrete->n};
  } else if (const auto* multi = space.As<MultiDiscrete>()) {
    spec.kind = DistributionKind::kMultiCategorical;
    spec.sizes = multi->n;
  } else if (const auto* binary = space.As<MultiBinary>()) {
    spec.kind = DistributionKind::kBernoulli;
    spec.sizes = {binary->n};
  } else {
    spec.kind = squashed ? DistributionKind::kSquashedGaussian : DistributionKind::kGaussian;
    spec.sizes = {static_cast<int64_t>(space.As<Box>()->low.size())};
  }
  return spec;
}

ActionMap::ActionMap(const Space& space, bool squashed) : space_(space), squashed_(squashed) {
  if (const auto* box = space.As<Box>()) {
    low_.assign(box->low.begin(), box->low.end());
    high_.assign(box->high.begin(), box->high.end());
  }
}

Tensor ActionMap::operator()(const Tensor& policy) const {
  if (trivial()) return policy;
  Tensor mapped = Tensor::Empty(policy.shape());
  const auto from = policy.data<float>();
  const auto to = mapped.data<float>();
  const size_t size = low_.size();
  for (size_t i = 0; i < from.size(); i += size) {
    for (size_t a = 0; a < size; ++a) {
      const float value = from[i + a];
      to[i + a] = squashed_ ? std::clamp(low_[a] + 0.5f * (value + 1.0f) * (high_[a] - low_[a]),
                                         low_[a], high_[a])
                            : std::clamp(value, low_[a], high_[a]);
    }
  }
  return mapped;
}

void ActionMap::Export(OnnxGraph& graph, const std::string& policy) const {
  std::string action = policy;
  const Shape of_one = space_.shape();
  std::vector<int64_t> shape = {OnnxGraph::kBatch};
  shape.insert(shape.end(), of_one.dims().begin(), of_one.dims().end());
  if (const auto* box = space_.As<Box>()) {
    const auto size = static_cast<int64_t>(box->low.size());
    const std::string low = graph.Constant("action.low", Tensor::From<float>({size}, low_));
    const std::string high = graph.Constant("action.high", Tensor::From<float>({size}, high_));
    if (squashed_) {
      const std::string half =
          graph.Node("Mul", {graph.Node("Sub", {high, low}), graph.Scalar(0.5f)});
      action = graph.Node(
          "Add", {low, graph.Node("Mul", {graph.Node("Add", {action, graph.Scalar(1)}), half})});
    }
    action = graph.Node("Min", {graph.Node("Max", {action, low}), high});
  } else {
    std::vector<int64_t> start;
    if (const auto* discrete = space_.As<Discrete>()) start = {discrete->start};
    if (const auto* multi = space_.As<MultiDiscrete>()) start = multi->start;
    if (std::ranges::any_of(start, [](int64_t first) { return first != 0; })) {
      const auto size = static_cast<int64_t>(start.size());
      action = graph.Node(
          "Add", {action, graph.Constant("action.start", Tensor::From<int64_t>({size}, start))});
    }
  }
  graph.Output("action", action, space_.dtype(), shape);
}

}  // namespace weft
