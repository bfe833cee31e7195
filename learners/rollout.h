// A rollout made ready for learning, and the minibatches cut from it: what every on-policy learner
// does before its loss. T steps, N environment rows, B transitions of a minibatch. Leaves are
// time-major, [T+1, N, ..] or [T, N, ..].
#pragma once

#include <cstdint>

#include "environments/critic_input.h"
#include "environments/observation_input.h"
#include "learners/returns.h"
#include "nn/actor_critic.h"
#include "nn/running_statistics.h"
#include "tensor/tensor_map.h"

namespace weft {

struct Rollout {
  // Takes the leaves that RolloutRecorder wrote, normalises observations, and values every step
  // with the network's present parameters, which are those that acted.
  Rollout(const TensorMap& leaves, const ObservationInput& input, const CriticInput& critic,
          const ActorCritic& network);

  int64_t steps = 0, rows = 0;               // T, N
  Tensor raw, x;                             // [T+1, N, ..], before and after normalisation
  Tensor critic_x;                           // [T+1, N, ..]; undefined when the critic sees x
  Tensor first;                              // u8 [T+1, N]; recurrent networks only
  Tensor mask;                               // u8 [T+1, N, ..]; undefined without action masks
  Tensor action, log_prob;                   // [T, N, ..]; the policy's draw
  Tensor reward, discount, type;             // [T, N], [T, N], u8 [T+1, N]
  Tensor value;                              // [T+1, N]
  RecurrentState policy_state, value_state;  // [N, H] before step 0
};

// B transitions. With a recurrent network they are whole sequences of b rows, B = T b, and x and
// first keep their time.
struct Minibatch {
  Tensor x, first;  // [B, ..]; or [T, b, ..] and [T, b]
  Tensor critic_x;  // as x; undefined when the critic sees x
  Tensor mask, action, log_prob, value, advantage, returns, valid;  // [B, ..]
  RecurrentState policy_state, value_state;                         // [b, H]
};

// index i64 [B] of transitions t * N + n.
Minibatch GatherTransitions(const Rollout& rollout, const Advantages& advantages,
                            const Tensor& index);
// index i64 [b] of rows.
Minibatch GatherSequences(const Rollout& rollout, const Advantages& advantages,
                          const Tensor& index);

// Features [B, F] of a minibatch from the trunk of the policy, and from that of the value.
Tensor PolicyFeatures(const ActorCritic& network, const Minibatch& batch);
Tensor ValueFeatures(const ActorCritic& network, const Minibatch& batch);

// Rewards divided by the deviation of the discounted return, without taking the mean off (Huang et
// al. 2022, continuous detail 7): a running return per row that restarts with each episode and goes
// on from rollout to rollout.
class RewardNormaliser {
 public:
  RewardNormaliser(const NormaliserConfig& config, double gamma)
      : config_(config), gamma_(gamma), statistics_(1) {}

  // [T, N] -> [T, N]; the statistics take the rollout in first. Returns the rewards as they are
  // when it is not enabled.
  Tensor operator()(const Rollout& rollout);

  TensorMap Save() const;
  void Load(const TensorMap& state);

 private:
  const NormaliserConfig config_;
  const double gamma_;
  RunningStatistics statistics_;
  Tensor running_;  // f64 [N]
};

}  // namespace weft
