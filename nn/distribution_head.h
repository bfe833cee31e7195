// The layer that turns features into a distribution over actions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "nn/distribution.h"
#include "nn/initialise.h"
#include "nn/layers.h"
#include "nn/module.h"

namespace weft {

// The last layer of a policy: features [B, in] to a distribution. Parameters: weight, bias, and
// log_std [A] when the spec is a Gaussian of state-independent deviation.
class DistributionHead final : public Module {
 public:
  DistributionHead(DistributionSpec spec, int64_t in, const Initialisation& initialisation,
                   double initial_log_std, Rng& rng);
  // mask: nn/distribution.h; undefined when the field has none. The head must outlive the
  // distribution.
  Distribution Forward(const Tensor& features, const Tensor& mask = {}) const;
  const DistributionSpec& spec() const { return spec_; }
  void Collect(std::string_view prefix, std::vector<NamedParameter>& out) override;
  // Appends the head and the choice of the most probable action to a graph (nn/onnx.h). penalty: is
  // added to the logits, -1e30 for what a mask forbids; may be "".
  std::string ExportMode(OnnxGraph& graph, std::string_view prefix, const std::string& features,
                         const std::string& penalty = "") const;

 private:
  DistributionSpec spec_;
  Linear linear_;
  Tensor log_std_;
};

}  // namespace weft
