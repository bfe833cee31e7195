// Advantages and returns over a rollout in dm_env semantics. T time, N environments.
//
// A rollout holds the steps 0..T of N rows. Transition t leads from step t to step t + 1 and
// carries the reward and discount of step t + 1. Under autoreset of the next-step kind a transition
// that leaves a kLast step is a dummy: it is masked (valid 0, advantage 0, return = value). A
// transition that reaches a kLast step ends the recursion; what follows it is worth discount *
// value of that step, which is the final observation itself: 0 after a termination, its value after
// a truncation. Step T stands for all that comes later.
//
// Every row is computed on its own, in double, from the last transition to the first: results
// depend on neither N nor threads.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace weft {

// Views of the parts that every function needs; all on the CPU and row-major.
struct RolloutSteps {
  Tensor value;     // f32 [T+1, N], of the observation of each step
  Tensor reward;    // f32 [T, N], of the transition
  Tensor discount;  // f32 [T, N], of the transition: 0 after a terminal step, else 1
  Tensor type;      // u8 [T+1, N], StepType of each step
};

struct Advantages {
  Tensor advantage;  // f32 [T, N]
  Tensor returns;    // f32 [T, N], advantage + value: the target of the critic
  Tensor valid;      // f32 [T, N], 1 for a transition, 0 for a dummy
};

// Generalised advantage estimation (Schulman et al. 2016, equation 16):
//   delta_t = r_t + gamma d_t v_{t+1} - v_t,  A_t = delta_t + gamma lambda d_t A_{t+1},
// the second term only where step t + 1 is not kLast.
// Throws kInvalidArgument naming the part whose shape or dtype does not fit, or T == 0.
Advantages GeneralisedAdvantages(const RolloutSteps& steps, double gamma, double lambda);

// Lambda returns (Sutton and Barto 2018, equation 12.2, in recursive form), f32 [T, N]:
//   G_t = r_t + gamma d_t ((1 - lambda) v_{t+1} + lambda G_{t+1}), G_T = v_T. Equal to advantage +
//   value above.
Tensor LambdaReturns(const RolloutSteps& steps, double gamma, double lambda);

// The sum of discounted rewards up to the end of the episode or the rollout, with the value of the
// step reached there.
inline Tensor DiscountedReturns(const RolloutSteps& steps, double gamma) {
  return LambdaReturns(steps, gamma, 1.0);
}

// n-step returns: rewards of m transitions plus the discounted value of step t + m, where m is n
// or, if that comes first, the number of transitions to the end of the episode or the rollout.
struct NStepReturns {
  Tensor returns;  // f32 [T, N]
  Tensor length;   // i64 [T, N], m; 0 for a dummy, whose return is its value
};
NStepReturns ComputeNStepReturns(const RolloutSteps& steps, double gamma, int64_t n);

}  // namespace weft
