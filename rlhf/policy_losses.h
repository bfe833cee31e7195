// Losses of policies and values on the tokens of answers, with their gradients. Denominators are
// those of the whole optimiser step, so a step may be cut into micro-batches in any way.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "rlhf/responses.h"

namespace weft {

// How token losses become one number: the mean over all tokens (PPO, DAPO), the mean over answers
// of their token means (GRPO), of their token sums, or the sum over tokens / (answers * max length)
// (Dr. GRPO).
enum class Aggregation : uint8_t {
  kTokenMean,
  kSequenceMeanTokenMean,
  kSequenceMeanTokenSum,
  kConstantLength
};

// Weight of each token's loss [T]. `answers`, `tokens`: of the whole step; 0: those of `responses`.
std::vector<double> TokenWeights(const Responses& responses, Aggregation aggregation,
                                 int64_t max_length = 0, int64_t answers = 0, int64_t tokens = 0);

enum class PolicyObjective : uint8_t {
  kClipped,   // max(-A ratio, -A clip(ratio)) by token (Schulman et al. 2017)
  kSequence,  // the same with the ratio of the whole answer, exp(mean log ratio) (Zheng et al.
              // 2025, GSPO)
  kCispo,     // -min(ratio, 1 + high) A log p, the factor held constant (MiniMax 2025)
};

struct PolicyLossOptions {
  PolicyObjective objective = PolicyObjective::kClipped;
  double clip_low = 0.2, clip_high = 0.2;
  double dual_clip = 0;  // > 1: the loss of A < 0 is at most -A times it (Ye et al. 2020); 0: off
  double log_ratio_clamp = 20;  // beyond it the ratio stays and has no gradient
  double beta = 0;              // of k3(reference || policy), added by token
};

struct PolicyLoss {
  double loss = 0;
  std::vector<double> d_log_p;  // [T]
  double clipped = 0;           // weighted share of tokens (answers) whose ratio left the bounds
  double approximate_kl = 0;    // mean of (log ratio)^2 / 2 over tokens
  double ratio = 0, max_log_ratio = 0;  // mean; largest |new - old|
};
// weight [T] from TokenWeights; advantage [T]. reference_log_p may be empty when beta is 0.
PolicyLoss EvaluatePolicyLoss(const Responses& responses, std::span<const double> log_p,
                              std::span<const double> old_log_p,
                              std::span<const double> reference_log_p,
                              std::span<const double> advantage, std::span<const double> weight,
                              const PolicyLossOptions& options);

struct ValueLossResult {
  double loss = 0;
  std::vector<double> d_value;  // [T]
};
// weight * 0.5 max((v - R)^2, (clip(v, old - c, old + c) - R)^2); clip 0: the first alone.
ValueLossResult EvaluateValueLoss(std::span<const double> value, std::span<const double> old_value,
                                  std::span<const double> returns, std::span<const double> weight,
                                  double clip);

}  // namespace weft
