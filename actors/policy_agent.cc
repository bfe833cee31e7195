#include "actors/policy_agent.h"

#include "environments/rollout_leaves.h"
#include "nn/onnx.h"

namespace weft {

PolicyParts::PolicyParts(const EnvironmentConfig& environment, const NetworkConfig& config,
                         double initial_log_std, uint64_t seed, bool centralised)
    : spec(environment.Spec()),
      actions(DistributionFor(spec.action, /*squashed=*/false, /*state_dependent_std=*/false)),
      input(spec, environment.normalise_observation),
      critic(spec, input.shape(), centralised),
      network([&] {
        Rng rng(seed, Purpose::kInitialise);
        return ActorCritic(config, input.shape(), critic.shape(), actions, initial_log_std, rng);
      }()) {}

PolicyAgent::PolicyAgent(PolicyParts parts, int64_t rows)
    : parts_(std::move(parts)),
      map_(parts_.spec.action, /*squashed=*/false),
      parameters_(parts_.network.Parameters()) {
  policy_state_ = parts_.network.policy_trunk().InitialState(rows);
  if (!parts_.network.shared()) value_state_ = parts_.network.value_trunk().InitialState(rows);
}

void PolicyAgent::Load(const TensorMap& snapshot) {
  AdoptSnapshot(parameters_, snapshot.Extract("network"));
  parts_.input.TakeFrom(snapshot);
}

void PolicyAgent::Act(const ActRequest& request, TensorMap& chosen) {
  chosen.Clear();
  const ActorCritic& network = parts_.network;
  const Tensor x = parts_.input(request.step, 1);  // [N, ..]
  Tensor features;                                 // [N, F]
  if (network.recurrent()) {
    AddState("policy_state.policy", policy_state_, chosen);
    AddState("policy_state.value", value_state_, chosen);
    const Tensor first = FirstSteps(request.step.At("type"));  // [N]
    features = network.policy_trunk().Step(x, first, policy_state_);
    if (!network.shared())
      network.value_trunk().Step(parts_.critic(x, request.step, 1), first, value_state_);
  } else {
    features = network.policy_trunk().Forward(x);
  }
  const Distribution policy = network.Policy(features, parts_.input.Mask(request.step));
  if (!request.explore) {
    chosen.Set("action", map_(policy.Mode()));
    return;
  }
  const SampledAction sampled = policy.SampleWithLogProb(policy.Noise(request.rngs));
  chosen.Set("action", map_(sampled.action));
  if (!map_.trivial()) chosen.Set("policy_action", sampled.action);
  chosen.Set("log_prob", sampled.log_prob);
}

void PolicyAgent::Export(OnnxGraph& graph) const {
  const std::string x = parts_.input.Export(graph);
  OnnxState state;
  const auto input = [&](const char* name, const Tensor& part) {
    return part.defined() ? graph.Input(name, DType::kFloat32, {OnnxGraph::kBatch, part.dim(1)})
                          : "";
  };
  const auto output = [&](const char* name, const std::string& value, const Tensor& part) {
    if (part.defined())
      graph.Output(name, value, DType::kFloat32, {OnnxGraph::kBatch, part.dim(1)});
  };
  state.hidden = input("state.hidden", policy_state_.hidden);
  state.cell = input("state.cell", policy_state_.cell);
  const std::string penalty = parts_.input.ExportMask(graph);
  map_.Export(graph, parts_.network.ExportMode(graph, x, state, penalty));
  output("next_state.hidden", state.hidden, policy_state_.hidden);
  output("next_state.cell", state.cell, policy_state_.cell);
}

TensorMap PolicyAgent::State() const {
  TensorMap state;
  AddState("policy", policy_state_, state);
  AddState("value", value_state_, state);
  return state;
}

void PolicyAgent::SetState(const TensorMap& state) {
  policy_state_ = TakeState("policy", state);
  value_state_ = TakeState("value", state);
}

}  // namespace weft
