// A policy and a value, each on a trunk of its own or both on one. B rows, T steps, F features.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "nn/distribution.h"
#include "nn/distribution_head.h"
#include "nn/layers.h"
#include "nn/network.h"

namespace weft {

class ActorCritic final : public Module {
 public:
  // observation, critic_input: the shape of one row for the policy's and for the value's trunk, the
  // same when they share it; initial_log_std: of Gaussian policies, whose log standard deviation is
  // a parameter.
  ActorCritic(const NetworkConfig& config, const Shape& observation, const Shape& critic_input,
              const DistributionSpec& actions, double initial_log_std, Rng& rng);

  bool recurrent() const { return policy_trunk_.recurrent(); }
  bool shared() const { return !value_trunk_; }  // one trunk, one recurrent state
  const Trunk& policy_trunk() const { return policy_trunk_; }
  const Trunk& value_trunk() const { return value_trunk_ ? *value_trunk_ : policy_trunk_; }

  // From the policy trunk's features [B, F]; mask: allowed actions, may be undefined.
  Distribution Policy(const Tensor& features, const Tensor& mask) const {
    return policy_head_.Forward(features, mask);
  }
  // From the value trunk's features [B, F] -> [B].
  Tensor Value(const Tensor& features) const;

  // Appends the choice of the most probable action to a graph (nn/onnx.h); state as Trunk::Export,
  // penalty as DistributionHead::ExportMode.
  std::string ExportMode(OnnxGraph& graph, const std::string& x, OnnxState& state,
                         const std::string& penalty) const;

  // Parameters: policy.*, policy.head.*, value.*, value.head.*
  void Collect(std::string_view prefix, std::vector<NamedParameter>& out) override;

 private:
  Trunk policy_trunk_;
  DistributionHead policy_head_;
  std::optional<Trunk> value_trunk_;
  std::optional<Linear> value_head_;
};

}  // namespace weft
