// Distributions over actions, made from what a network puts out. B rows; parameters, actions and
// results are batched along dimension 0. Everything but drawing noise goes through ops, so a tape
// differentiates it.
//
//   const Distribution policy = head.Forward(features);       // normalises once
//   const Tensor action = policy.Sample(policy.Noise(rngs));  // acting
//   const Tensor log_prob = policy.LogProb(action);           // learning
//
// kind              network output [B, outputs]       action                    mask
// kCategorical      logits [B, n]                     i64 [B]                   u8 [B, n]
// kMultiCategorical logits of all parts [B, sum n]    i64 [B, parts]            u8 [B, sum n]
// kBernoulli        logits [B, A]                     i64 [B, A] of 0 and 1     -
// kGaussian         mean [B, A] (and log std [B, A])  f32 [B, A]                -
// kSquashedGaussian the same, before tanh             f32 [B, A] in (-1, 1)     -
//
// A mask has 1 where the action is allowed. What is not allowed has probability exactly 0 and
// gradient 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "tensor/tensor.h"

namespace weft {

enum class DistributionKind : uint8_t {
  kCategorical,
  kMultiCategorical,
  kBernoulli,
  kGaussian,
  kSquashedGaussian,
};
const char* Name(DistributionKind kind);

struct DistributionSpec {
  DistributionKind kind = DistributionKind::kCategorical;
  // {n}, {n of each part} or {A}.
  std::vector<int64_t> sizes;
  // Gaussians: the network puts out the log standard deviation behind the mean, clamped to -20..2;
  // otherwise it is a parameter [A] of its own.
  bool state_dependent_std = false;

  int64_t outputs() const;     // columns of the network's output
  int64_t noise() const;       // random numbers a sample takes: 1, parts or A
  Shape action_shape() const;  // of one row
  DType action_dtype() const;
  bool gaussian() const {
    return kind == DistributionKind::kGaussian || kind == DistributionKind::kSquashedGaussian;
  }
};

// A draw with its log-probability, both differentiable in the parameters for Gaussians.
struct SampledAction {
  Tensor action, log_prob;
};

class Distribution {
 public:
  // Discrete kinds. mask may be undefined. Throws when a row of the mask allows nothing. spec must
  // outlive this.
  static Distribution Discrete(const DistributionSpec& spec, const Tensor& logits,
                               const Tensor& mask = {});
  // Gaussians. log_std [A] when the spec is not state-dependent, else undefined.
  static Distribution Gaussian(const DistributionSpec& spec, const Tensor& output,
                               const Tensor& log_std = {});

  int64_t rows() const { return parameters_.dim(0); }

  // [B, noise()]: uniform in [0, 1) for discrete kinds, standard normal for Gaussians. Row i draws
  // from rngs[i], so it does not depend on the other rows; the second form draws all rows in order
  // from one generator.
  Tensor Noise(std::span<Rng> rngs) const;
  Tensor Noise(Rng& rng) const;

  // The action that this noise stands for. A function of the row's parameters and noise alone.
  Tensor Sample(const Tensor& noise) const;
  // With log_prob [B]. For the squashed Gaussian it comes from the value before tanh, which
  // LogProb(action) can only recover approximately.
  SampledAction SampleWithLogProb(const Tensor& noise) const;
  // The most probable action; for the squashed Gaussian tanh(mean).
  Tensor Mode() const;

  Tensor LogProb(const Tensor& action) const;  // [B], summed over parts or dimensions
  // Squashed Gaussian: the log-probability [B] of tanh(value), exact where tanh saturates.
  Tensor LogProbBeforeTanh(const Tensor& value) const;
  // [B], in nats; of the squashed Gaussian it has no closed form and this throws.
  Tensor Entropy() const;
  // KL(this || other) [B], same kind and sizes. The squashed Gaussian's is that before tanh, which
  // is equal.
  Tensor KlTo(const Distribution& other) const;

 private:
  Distribution() = default;

  const DistributionSpec* spec_ = nullptr;
  Tensor parameters_;  // categorical kinds: normalised log-probabilities; Bernoulli: logits;
                       // Gaussians: mean
  Tensor log_std_;     // Gaussians: [A] or [B, A]
};

}  // namespace weft
