// From scores of answers to advantages of tokens. All in double; T tokens of all answers, B
// answers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rlhf/responses.h"

namespace weft {

// Estimates of KL(policy || reference) from the token that was sampled (Schulman 2020): k1 = old -
// ref, k2 = k1^2 / 2, k3 = exp(-k1) - 1 + k1, abs = |k1|.
enum class KlEstimator : uint8_t { kK1, kK2, kK3, kAbs };
double EstimateKl(KlEstimator estimator, double old_log_p, double reference_log_p);

struct TokenRewardOptions {
  double beta = 0.05;
  KlEstimator kl = KlEstimator::kK1;
  double score_low = -1e30, score_high = 1e30;
  double missing_eos_penalty = 0;
};
// [T]: -beta kl everywhere, and on the last token of each answer the score, less the penalty where
// it did not end by itself, clipped (Ziegler et al. 2019). An empty answer has no reward. With beta
// 0 the log-probabilities are not read.
std::vector<double> TokenRewards(const Responses& responses, std::span<const double> old_log_p,
                                 std::span<const double> reference_log_p,
                                 std::span<const double> score, std::span<const uint8_t> has_eos,
                                 const TokenRewardOptions& options);

struct TokenAdvantages {
  std::vector<double> advantage, returns;  // returns = advantage + value, before any whitening
};
// Generalised advantage estimation within each answer; the value after its end is 0.
TokenAdvantages TokenGae(const Responses& responses, std::span<const double> reward,
                         std::span<const double> value, double gamma, double lambda);

// (x - mean) / sqrt(variance + epsilon) over all of them, biased variance; without shift the mean
// is added again.
std::vector<double> Whiten(std::span<const double> values, double epsilon = 1e-8,
                           bool shift = true);

// What divides a group's differences to its mean.
enum class GroupScale : uint8_t { kNone, kUnbiased, kBiased };
// [B]: rewards of groups of `group` answers to one prompt, less their mean, over std + epsilon
// (Shao et al. 2024; kNone: Liu et al. 2025, Dr. GRPO). A group whose rewards are all equal gets 0.
std::vector<double> GroupAdvantages(std::span<const double> reward, int64_t group, GroupScale scale,
                                    double epsilon);
// [B]: reward less the mean of the others' (Ahmadian et al. 2024).
std::vector<double> LeaveOneOutAdvantages(std::span<const double> reward, int64_t group);
// [T]: sums of rewards to the end of the answer, discounted (Hu et al. 2025, before whitening).
std::vector<double> RewardsToGo(const Responses& responses, std::span<const double> reward,
                                double gamma);

// beta *= 1 + clip(kl / target - 1, -0.2, 0.2) * answers / horizon (Ziegler et al. 2019); kl: the
// sum over an answer's tokens, mean over answers.
double AdaptKl(double beta, double kl, double target, double horizon, int64_t answers);
// DAPO's soft punishment of long answers (Yu et al. 2025): 0 up to max - buffer tokens, then
// falling to -factor at max.
double OverlongPenalty(int64_t length, int64_t max_length, int64_t buffer, double factor);

}  // namespace weft
