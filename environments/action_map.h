// From what a policy draws to what the environment takes, and which distribution fits an action
// space.
#pragma once

#include <string>
#include <vector>

#include "environments/space.h"
#include "nn/distribution.h"

namespace weft {

class OnnxGraph;

// The distribution over a space's actions: Categorical, MultiCategorical, Bernoulli, or a Gaussian
// (squashed: by tanh).
DistributionSpec DistributionFor(const Space& space, bool squashed, bool state_dependent_std);

// Box actions: a Gaussian's draw is clipped to the bounds; a squashed draw in (-1, 1) is mapped
// onto them. Other spaces: nothing to do. Learners see the policy's draw, environments the mapped
// one.
class ActionMap {
 public:
  ActionMap(const Space& space, bool squashed);

  bool trivial() const { return low_.empty(); }
  // policy f32 [.., A] -> f32 [.., A].
  Tensor operator()(const Tensor& policy) const;

  // Appends the same to a graph (nn/onnx.h) as its output "action". Discrete actions become the
  // space's own numbers, which need not start at 0.
  void Export(OnnxGraph& graph, const std::string& policy) const;

 private:
  Space space_;
  bool squashed_;
  std::vector<float> low_, high_;  // [A]; empty when trivial
};

}  // namespace weft
