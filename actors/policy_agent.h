// The agent of stochastic policies on an ActorCritic network: samples while training, takes the
// mode otherwise, and carries the recurrent states of its rows.
#pragma once

#include <vector>

#include "actors/agent.h"
#include "environments/action_map.h"
#include "environments/critic_input.h"
#include "environments/observation_input.h"
#include "nn/actor_critic.h"

namespace weft {

// What agent and learner of such a method build alike.
struct PolicyParts {
  // centralised: the critic sees the state too; not with a shared trunk.
  PolicyParts(const EnvironmentConfig& environment, const NetworkConfig& config,
              double initial_log_std, uint64_t seed, bool centralised = false);

  EnvironmentSpec spec;
  DistributionSpec actions;
  ObservationInput input;
  CriticInput critic;
  ActorCritic network;
};

class PolicyAgent final : public Agent {
 public:
  PolicyAgent(PolicyParts parts, int64_t rows);

  void Load(const TensorMap& snapshot) override;
  // chosen: action; while exploring also log_prob [N], policy_action [N, A] (the draw before the
  // action map) where there is a map, and with memory policy_state.* [N, H] before the step.
  void Act(const ActRequest& request, TensorMap& chosen) override;
  void Export(OnnxGraph& graph) const override;
  TensorMap State() const override;
  void SetState(const TensorMap& state) override;

 private:
  PolicyParts parts_;
  const ActionMap map_;
  std::vector<NamedParameter> parameters_;
  RecurrentState policy_state_, value_state_;  // [N, H]
};

}  // namespace weft
