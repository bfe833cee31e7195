#include "learners/rollout.h"

#include <cstring>
#include <vector>

#include "environments/environment.h"
#include "environments/rollout_leaves.h"
#include "tensor/ops.h"

namespace weft {
namespace {

// [T, N, ..] -> [T * N, ..]: a view.
Tensor Flat(const Tensor& x) {
  std::vector<int64_t> dims = {x.dim(0) * x.dim(1)};
  for (int d = 2; d < x.shape().rank(); ++d) dims.push_back(x.dim(d));
  return x.Reshape(Shape(dims));
}

// Columns of x [T, N, ..] -> [T, b, ..].
Tensor GatherColumns(const Tensor& x, std::span<const int64_t> columns) {
  const int64_t steps = x.dim(0), rows = x.dim(1);
  const size_t bytes = x.bytes() / static_cast<size_t>(steps * rows);
  Tensor gathered =
      Tensor::Empty(x.shape().WithDim(1, static_cast<int64_t>(columns.size())), x.dtype());
  std::byte* to = gathered.raw();
  for (int64_t t = 0; t < steps; ++t) {
    for (const int64_t column : columns) {
      std::memcpy(to, x.raw() + static_cast<size_t>(t * rows + column) * bytes, bytes);
      to += bytes;
    }
  }
  return gathered;
}

RecurrentState GatherState(const RecurrentState& state, const Tensor& index) {
  return {state.hidden.defined() ? GatherRows(state.hidden, index) : Tensor(),
          state.cell.defined() ? GatherRows(state.cell, index) : Tensor()};
}

// The state of all rows before step 0, from leaves [1, N, H].
RecurrentState StartState(const std::string& name, const TensorMap& leaves) {
  RecurrentState state = TakeState("policy_state." + name, leaves);
  if (state.hidden.defined()) state.hidden = state.hidden.Row(0);
  if (state.cell.defined()) state.cell = state.cell.Row(0);
  return state;
}

// [B, F]; with memory x is [T, b, ..].
Tensor FeaturesOf(const Trunk& trunk, const Tensor& x, const Tensor& first, RecurrentState state) {
  if (!trunk.recurrent()) return trunk.Forward(x);
  const Tensor features = trunk.Sequence(x, first, state);  // [T, b, F]
  return Reshape(features, {features.dim(0) * features.dim(1), features.dim(2)});
}

Tensor ValuesOf(const Rollout& rollout, const ActorCritic& network) {
  const Trunk& trunk = network.value_trunk();
  const Tensor& x = rollout.critic_x.defined() ? rollout.critic_x : rollout.x;
  Tensor features;  // [(T+1) N, F]
  if (network.recurrent()) {
    RecurrentState state = rollout.value_state;
    features = Flat(trunk.Sequence(x, rollout.first, state));
  } else {
    features = trunk.Forward(Flat(x));
  }
  return network.Value(features).Reshape({rollout.steps + 1, rollout.rows});
}

}  // namespace

Rollout::Rollout(const TensorMap& leaves, const ObservationInput& input, const CriticInput& critic,
                 const ActorCritic& network)
    : reward(leaves.At("reward")), discount(leaves.At("discount")), type(leaves.At("type")) {
  steps = reward.dim(0);
  rows = reward.dim(1);
  raw = input.Raw(leaves, 2);
  x = input(leaves, 2);
  if (critic.centralised()) critic_x = critic(x, leaves, 2);
  mask = input.Mask(leaves);
  const Tensor* policy_action = leaves.Find("policy_action");
  action = policy_action ? *policy_action : leaves.At("action");
  log_prob = leaves.At("log_prob");
  if (network.recurrent()) {
    first = FirstSteps(type);
    policy_state = StartState("policy", leaves);
    value_state = network.shared() ? policy_state : StartState("value", leaves);
  }
  value = ValuesOf(*this, network);
}

Minibatch GatherTransitions(const Rollout& rollout, const Advantages& advantages,
                            const Tensor& index) {
  const auto gather = [&](const Tensor& leaf) {
    return leaf.defined() ? GatherRows(Flat(leaf), index) : Tensor();
  };
  return {.x = gather(rollout.x),
          .critic_x = gather(rollout.critic_x),
          .mask = gather(rollout.mask),
          .action = gather(rollout.action),
          .log_prob = gather(rollout.log_prob),
          .value = gather(rollout.value),
          .advantage = gather(advantages.advantage),
          .returns = gather(advantages.returns),
          .valid = gather(advantages.valid)};
}

Minibatch GatherSequences(const Rollout& rollout, const Advantages& advantages,
                          const Tensor& index) {
  const auto columns = index.data<int64_t>();
  const auto sequence = [&](const Tensor& leaf) {
    return GatherColumns(leaf.Slice(0, rollout.steps), columns);
  };
  const auto flat = [&](const Tensor& leaf) {
    return leaf.defined() ? Flat(sequence(leaf)) : Tensor();
  };
  return {.x = sequence(rollout.x),
          .first = sequence(rollout.first),
          .critic_x = rollout.critic_x.defined() ? sequence(rollout.critic_x) : Tensor(),
          .mask = flat(rollout.mask),
          .action = flat(rollout.action),
          .log_prob = flat(rollout.log_prob),
          .value = flat(rollout.value),
          .advantage = flat(advantages.advantage),
          .returns = flat(advantages.returns),
          .valid = flat(advantages.valid),
          .policy_state = GatherState(rollout.policy_state, index),
          .value_state = GatherState(rollout.value_state, index)};
}

Tensor PolicyFeatures(const ActorCritic& network, const Minibatch& batch) {
  return FeaturesOf(network.policy_trunk(), batch.x, batch.first, batch.policy_state);
}

Tensor ValueFeatures(const ActorCritic& network, const Minibatch& batch) {
  return FeaturesOf(network.value_trunk(), batch.critic_x.defined() ? batch.critic_x : batch.x,
                    batch.first, batch.value_state);
}

Tensor RewardNormaliser::operator()(const Rollout& rollout) {
  if (!config_.enabled) return rollout.reward;
  const int64_t steps = rollout.steps, rows = rollout.rows;
  if (!running_.defined()) running_ = Tensor::Zeros({rows}, DType::kFloat64);
  Tensor returns = Tensor::Empty({steps * rows, 1}, DType::kFloat64);
  const auto reward = rollout.reward.data<float>();
  const auto type = rollout.type.data<uint8_t>();
  const auto running = running_.data<double>();
  const auto out = returns.data<double>();
  for (int64_t t = 0; t < steps; ++t) {
    for (int64_t n = 0; n < rows; ++n) {
      const int64_t i = t * rows + n;
      if (type[i] == static_cast<uint8_t>(StepType::kLast))
        running[n] = 0;  // this transition is the autoreset's
      running[n] = running[n] * gamma_ + reward[i];
      out[i] = running[n];
    }
  }
  statistics_.Update(returns);
  return statistics_.Scale(rollout.reward.Reshape({steps * rows, 1}), config_.clip, config_.epsilon)
      .Reshape({steps, rows});
}

TensorMap RewardNormaliser::Save() const {
  TensorMap state;
  state.Merge("statistics", statistics_.Save());
  if (running_.defined()) state.Set("running", running_.Clone());
  return state;
}

void RewardNormaliser::Load(const TensorMap& state) {
  statistics_.Load(state.Extract("statistics"));
  if (const Tensor* running = state.Find("running")) running_ = running->Clone();
}

}  // namespace weft
