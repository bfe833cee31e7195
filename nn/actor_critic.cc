#include "nn/actor_critic.h"

#include <string>

namespace weft {

ActorCritic::ActorCritic(const NetworkConfig& config, const Shape& observation,
                         const Shape& critic_input, const DistributionSpec& actions,
                         double initial_log_std, Rng& rng)
    : policy_trunk_(config, observation, rng),
      policy_head_(actions, policy_trunk_.out(), config.head_initialisation(0.01), initial_log_std,
                   rng) {
  if (!config.shared) value_trunk_.emplace(config, critic_input, rng);
  value_head_.emplace(value_trunk().out(), 1, Activation::kNone, config.head_initialisation(1.0),
                      rng);
}

Tensor ActorCritic::Value(const Tensor& features) const {
  const Tensor value = value_head_->Forward(features);
  return Reshape(value, {value.elements()});
}

std::string ActorCritic::ExportMode(OnnxGraph& graph, const std::string& x, OnnxState& state,
                                    const std::string& penalty) const {
  return policy_head_.ExportMode(graph, "policy.head.",
                                 policy_trunk_.Export(graph, "policy.", x, state), penalty);
}

void ActorCritic::Collect(std::string_view prefix, std::vector<NamedParameter>& out) {
  const std::string at(prefix);
  policy_trunk_.Collect(at + "policy.", out);
  policy_head_.Collect(at + "policy.head.", out);
  if (value_trunk_) value_trunk_->Collect(at + "value.", out);
  value_head_->Collect(at + "value.head.", out);
}

}  // namespace weft
