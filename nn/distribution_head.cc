#include "nn/distribution_head.h"

#include <utility>

#include "base/check.h"

namespace weft {

DistributionHead::DistributionHead(DistributionSpec spec, int64_t in,
                                   const Initialisation& initialisation, double initial_log_std,
                                   Rng& rng)
    : spec_(std::move(spec)), linear_(in, spec_.outputs(), Activation::kNone, initialisation, rng) {
  if (spec_.gaussian() && !spec_.state_dependent_std) {
    log_std_ = Tensor::Full(spec_.action_shape(), initial_log_std);
  }
}

Distribution DistributionHead::Forward(const Tensor& features, const Tensor& mask) const {
  const Tensor output = linear_.Forward(features);
  if (!spec_.gaussian()) return Distribution::Discrete(spec_, output, mask);
  WEFT_CHECK(!mask.defined()) << "a " << Name(spec_.kind) << " takes no action mask";
  return Distribution::Gaussian(spec_, output, log_std_);
}

void DistributionHead::Collect(std::string_view prefix, std::vector<NamedParameter>& out) {
  linear_.Collect(prefix, out);
  if (log_std_.defined()) AddParameter(prefix, "log_std", log_std_, out);
}

}  // namespace weft
