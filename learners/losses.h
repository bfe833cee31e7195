// Losses as pure functions of tensors, made of ops, so they can be differentiated. B rows of a
// minibatch, A actions.
//
// A loss is returned per row, [B]; WeightedSum reduces it with one weight a row. MeanWeights makes
// the weights of a mean over the valid rows of the whole optimiser step: its denominator is a
// count, so the gradient of a step does not depend on how the step is split into micro-batches or
// over replicas. What is a constant of the loss (targets, old values, advantages, weights) must not
// be tracked: detach it where it came from a network.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace weft {

// ---- Reduction

// valid f32 [B] of 0 and 1 (undefined: all valid, then `rows` says how many) -> f32 [B], valid /
// denominator. denominator: valid rows of the whole optimiser step; 0 gives zero weights.
Tensor MeanWeights(const Tensor& valid, int64_t rows, double denominator);
// Sum over rows of x * weight, both [B] -> [].
Tensor WeightedSum(const Tensor& x, const Tensor& weight);

// ---- PPO (Schulman et al. 2017, "Proximal policy optimization algorithms")

struct Surrogate {
  Tensor loss;       // [B]
  Tensor ratio;      // [B], pi / pi_old
  Tensor log_ratio;  // [B]
};
// Equation 7, negated: max(-A r, -A clip(r, 1 - clip, 1 + clip)). dual_clip > 1 bounds the loss of
// rows with A < 0 by -A dual_clip (Ye et al. 2020, equation 5); 0 turns it off. log_prob,
// old_log_prob, advantage [B].
Surrogate ClippedSurrogate(const Tensor& log_prob, const Tensor& old_log_prob,
                           const Tensor& advantage, double clip, double dual_clip = 0);

// Equation 9's squared error, halved: 0.5 (V - R)^2 [B]. With clip > 0 the larger of that and of
// the error of V_old + clip(V - V_old, -clip, clip), as in the authors' code; old_value may be
// undefined otherwise.
Tensor ValueLoss(const Tensor& value, const Tensor& returns, const Tensor& old_value = {},
                 double clip = 0);

// (A - mean) / (standard deviation + epsilon) over the valid rows, with the unbiased deviation;
// masked rows become 0. Fewer than two valid rows are left as they are: their deviation is not
// defined. valid may be undefined. [B] -> new [B].
Tensor NormaliseAdvantages(const Tensor& advantage, const Tensor& valid, double epsilon = 1e-8);

// Figures for people and for early stopping, over the valid rows (valid may be undefined); 0 when
// there are none.
struct PolicyDivergence {
  double kl_k1 = 0;          // mean of -log r (Schulman 2020, "Approximating KL divergence", k1)
  double kl_k3 = 0;          // mean of (r - 1) - log r (k3): never negative
  double clip_fraction = 0;  // share of rows with |r - 1| > clip
};
PolicyDivergence MeasureDivergence(const Surrogate& policy, const Tensor& valid, double clip);

// 1 - Var(returns - value) / Var(returns), population variances; 0 when the returns do not vary.
double ExplainedVariance(const Tensor& value, const Tensor& returns, const Tensor& valid = {});

// ---- DQN (Mnih et al. 2015; double: van Hasselt et al. 2016; weights: Schaul et al. 2016)

// r + d max_a Q_target(s', a) [B]; with next_q_online [B, A] the action is the online network's
// argmax (double DQN, equation 4; the lowest index wins ties). discount [B] already holds gamma^m
// and is 0 after a terminal step.
Tensor DqnTarget(const Tensor& reward, const Tensor& discount, const Tensor& next_q_target,
                 const Tensor& next_q_online = {});
// Q(s, a) - target [B], from q [B, A], action i64 [B].
Tensor TdError(const Tensor& q, const Tensor& action, const Tensor& target);
// 0.5 x^2 within delta, delta (|x| - 0.5 delta) beyond (Huber 1964) [B].
Tensor HuberLoss(const Tensor& error, double delta = 1.0);
// x^2 [B].
Tensor SquaredLoss(const Tensor& error);

// ---- SAC (Haarnoja et al. 2018, "Soft actor-critic algorithms and applications")

// Equation 3 with twin critics: r + d (min(Q1, Q2)(s', a') - alpha log pi(a'|s')) [B]. alpha [] or
// [1].
Tensor SacTarget(const Tensor& reward, const Tensor& discount, const Tensor& next_q1,
                 const Tensor& next_q2, const Tensor& next_log_prob, const Tensor& alpha);
// Equation 5 summed over both critics: 0.5 ((Q1 - y)^2 + (Q2 - y)^2) [B], as Stable-Baselines3
// scales it.
Tensor TwinCriticLoss(const Tensor& q1, const Tensor& q2, const Tensor& target);
// Equation 7 with reparameterised actions: alpha log pi(a|s) - min(Q1, Q2)(s, a) [B].
Tensor SacActorLoss(const Tensor& log_prob, const Tensor& q1, const Tensor& q2,
                    const Tensor& alpha);
// Equation 18 in its log form: -log alpha (log pi + target entropy) averaged over rows with
// `weight` [B]. log_alpha [] or [1] is the parameter -> its shape; log_prob [B] is a constant.
Tensor TemperatureLoss(const Tensor& log_alpha, const Tensor& log_prob, const Tensor& weight,
                       double target_entropy);

}  // namespace weft
