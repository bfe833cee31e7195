#include "rlhf/advantages.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace weft {

double EstimateKl(KlEstimator estimator, double old_log_p, double reference_log_p) {
  const double k1 = old_log_p - reference_log_p;
  switch (estimator) {
    case KlEstimator::kK1:
      return k1;
    case KlEstimator::kK2:
      return k1 * k1 / 2;
    case KlEstimator::kK3:
      return std::expm1(-k1) + k1;
    case KlEstimator::kAbs:
      break;
  }
  return std::fabs(k1);
}

std::vector<double> TokenRewards(const Responses& responses, std::span<const double> old_log_p,
                                 std::span<const double> reference_log_p,
                                 std::span<const double> score, std::span<const uint8_t> has_eos,
                                 const TokenRewardOptions& options) {
  std::vector<double> reward(responses.tokens());
  for (int64_t t = 0; options.beta != 0 && t < responses.tokens(); ++t) {
    reward[t] = -options.beta * EstimateKl(options.kl, old_log_p[t], reference_log_p[t]);
  }
  for (int64_t i = 0; i < responses.count(); ++i) {
    if (responses.length(i) == 0) continue;
    const double penalty = has_eos[i] != 0 ? 0 : options.missing_eos_penalty;
    reward[responses.offsets[i + 1] - 1] +=
        std::clamp(score[i] - penalty, options.score_low, options.score_high);
  }
  return reward;
}

TokenAdvantages TokenGae(const Responses& responses, std::span<const double> reward,
                         std::span<const double> value, double gamma, double lambda) {
  TokenAdvantages result{std::vector<double>(reward.size()), std::vector<double>(reward.size())};
  for (int64_t i = 0; i < responses.count(); ++i) {
    double next_value = 0, advantage = 0;
    for (int64_t t = responses.offsets[i + 1] - 1; t >= responses.offsets[i]; --t) {
      advantage = reward[t] + gamma * next_value - value[t] + gamma * lambda * advantage;
      next_value = value[t];
      result.advantage[t] = advantage;
      result.returns[t] = advantage + value[t];
    }
  }
  return result;
}

std::vector<double> Whiten(std::span<const double> values, double epsilon, bool shift) {
  const auto count = static_cast<double>(std::max<size_t>(1, values.size()));
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double variance = 0;
  for (const double value : values) variance += (value - mean) * (value - mean) / count;
  std::vector<double> whitened;
  for (const double value : values) {
    whitened.push_back((value - mean) / std::sqrt(variance + epsilon) + (shift ? 0 : mean));
  }
  return whitened;
}

std::vector<double> GroupAdvantages(std::span<const double> reward, int64_t group, GroupScale scale,
                                    double epsilon) {
  std::vector<double> advantages;
  for (size_t begin = 0; begin < reward.size(); begin += group) {
    const auto rewards = reward.subspan(begin, group);
    const auto n = static_cast<double>(group);
    const double mean = std::accumulate(rewards.begin(), rewards.end(), 0.0) / n;
    // The mean of equal numbers may differ from them in the last bit.
    const bool equal = std::ranges::all_of(rewards, [&](double r) { return r == rewards[0]; });
    double squares = 0;
    for (const double r : rewards) squares += (r - mean) * (r - mean);
    const double freedom = scale == GroupScale::kUnbiased ? n - 1 : n;
    const double deviation = freedom > 0 ? std::sqrt(squares / freedom) : 0;
    for (const double r : rewards) {
      const double difference = equal ? 0 : r - mean;
      advantages.push_back(scale == GroupScale::kNone ? difference
                                                      : difference / (deviation + epsilon));
    }
  }
  return advantages;
}

std::vector<double> LeaveOneOutAdvantages(std::span<const double> reward, int64_t group) {
  std::vector<double> advantages;
  for (size_t begin = 0; begin < reward.size(); begin += group) {
    const auto rewards = reward.subspan(begin, group);
    const double sum = std::accumulate(rewards.begin(), rewards.end(), 0.0);
    for (const double r : rewards) {
      advantages.push_back(group > 1 ? r - (sum - r) / static_cast<double>(group - 1) : r);
    }
  }
  return advantages;
}

std::vector<double> RewardsToGo(const Responses& responses, std::span<const double> reward,
                                double gamma) {
  std::vector<double> sums(reward.size());
  for (int64_t i = 0; i < responses.count(); ++i) {
    double sum = 0;
    for (int64_t t = responses.offsets[i + 1] - 1; t >= responses.offsets[i]; --t) {
      sum = reward[t] + gamma * sum;
      sums[t] = sum;
    }
  }
  return sums;
}

double AdaptKl(double beta, double kl, double target, double horizon, int64_t answers) {
  const double error = std::clamp(kl / target - 1, -0.2, 0.2);
  return beta * (1 + error * static_cast<double>(answers) / horizon);
}

double OverlongPenalty(int64_t length, int64_t max_length, int64_t buffer, double factor) {
  const int64_t over = std::clamp<int64_t>(length - (max_length - buffer), 0, buffer);
  return -static_cast<double>(over) / static_cast<double>(buffer) * factor;
}

}  // namespace weft
