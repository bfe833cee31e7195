#include "rlhf/policy_losses.h"

#include <algorithm>
#include <cmath>

namespace weft {

std::vector<double> TokenWeights(const Responses& responses, Aggregation aggregation,
                                 int64_t max_length, int64_t answers, int64_t tokens) {
  const auto all_answers = static_cast<double>(answers > 0 ? answers : responses.count());
  const auto all_tokens = static_cast<double>(tokens > 0 ? tokens : responses.tokens());
  std::vector<double> weights;
  for (int64_t i = 0; i < responses.count(); ++i) {
    double weight = 0;
    switch (aggregation) {
      case Aggregation::kTokenMean:
        weight = 1 / all_tokens;
        break;
      case Aggregation::kSequenceMeanTokenMean:
        weight = 1 / (all_answers * static_cast<double>(responses.length(i)));
        break;
      case Aggregation::kSequenceMeanTokenSum:
        weight = 1 / all_answers;
        break;
      case Aggregation::kConstantLength:
        weight = 1 / (all_answers * static_cast<double>(max_length));
        break;
    }
    weights.insert(weights.end(), responses.length(i), weight);
  }
  return weights;
}

namespace {

// One ratio with its advantage: the loss and its derivative by the log ratio.
struct Surrogate {
  double loss, slope;
  bool clipped;
};
Surrogate Clip(double log_ratio, double advantage, const PolicyLossOptions& options) {
  const double bounded = std::clamp(log_ratio, -options.log_ratio_clamp, options.log_ratio_clamp);
  const double ratio = std::exp(bounded);
  const double kept = std::clamp(ratio, 1 - options.clip_low, 1 + options.clip_high);
  const double plain = -advantage * ratio, clipped = -advantage * kept;
  const bool moves = bounded == log_ratio;
  Surrogate result{.loss = std::max(plain, clipped), .slope = 0, .clipped = kept != ratio};
  // Where both are equal the ratio is inside the bounds and the plain branch has the slope.
  if (plain >= clipped && moves) result.slope = plain;
  if (options.dual_clip > 1 && advantage < 0 && result.loss > -advantage * options.dual_clip) {
    result = {.loss = -advantage * options.dual_clip, .slope = 0, .clipped = true};
  }
  return result;
}

}  // namespace

PolicyLoss EvaluatePolicyLoss(const Responses& responses, std::span<const double> log_p,
                              std::span<const double> old_log_p,
                              std::span<const double> reference_log_p,
                              std::span<const double> advantage, std::span<const double> weight,
                              const PolicyLossOptions& options) {
  PolicyLoss result;
  result.d_log_p.assign(log_p.size(), 0);
  double total = 0;
  for (int64_t i = 0; i < responses.count(); ++i) {
    const int64_t begin = responses.offsets[i], end = responses.offsets[i + 1];
    double answer_log_ratio = 0;
    for (int64_t t = begin; t < end; ++t) answer_log_ratio += log_p[t] - old_log_p[t];
    answer_log_ratio /= static_cast<double>(std::max<int64_t>(1, end - begin));
    for (int64_t t = begin; t < end; ++t) {
      const double log_ratio = log_p[t] - old_log_p[t];
      const double bounded =
          std::clamp(log_ratio, -options.log_ratio_clamp, options.log_ratio_clamp);
      Surrogate s{};
      switch (options.objective) {
        case PolicyObjective::kClipped:
          s = Clip(log_ratio, advantage[t], options);
          result.d_log_p[t] += weight[t] * s.slope;
          break;
        case PolicyObjective::kSequence:
          s = Clip(answer_log_ratio, advantage[t], options);
          for (int64_t u = begin; u < end; ++u) {
            result.d_log_p[u] += weight[t] * s.slope / static_cast<double>(end - begin);
          }
          break;
        case PolicyObjective::kCispo: {
          const double factor = std::min(std::exp(bounded), 1 + options.clip_high);
          s = {.loss = -factor * advantage[t] * log_p[t],
               .slope = -factor * advantage[t],
               .clipped = std::exp(bounded) > 1 + options.clip_high};
          result.d_log_p[t] += weight[t] * s.slope;
          break;
        }
      }
      result.loss += weight[t] * s.loss;
      result.clipped += weight[t] * s.clipped;
      if (options.beta != 0) {
        const double difference = reference_log_p[t] - log_p[t];
        result.loss += weight[t] * options.beta * (std::expm1(difference) - difference);
        result.d_log_p[t] += weight[t] * options.beta * -std::expm1(difference);
      }
      total += weight[t];
      result.approximate_kl += log_ratio * log_ratio / 2;
      result.ratio += std::exp(bounded);
      result.max_log_ratio = std::max(result.max_log_ratio, std::fabs(log_ratio));
    }
  }
  const auto tokens = static_cast<double>(std::max<size_t>(1, log_p.size()));
  if (total > 0) result.clipped /= total;
  result.approximate_kl /= tokens;
  result.ratio /= tokens;
  return result;
}

ValueLossResult EvaluateValueLoss(std::span<const double> value, std::span<const double> old_value,
                                  std::span<const double> returns, std::span<const double> weight,
                                  double clip) {
  ValueLossResult result;
  for (size_t t = 0; t < value.size(); ++t) {
    const double plain = value[t] - returns[t];
    double loss = plain * plain, slope = 2 * plain;
    if (clip > 0) {
      const double kept = std::clamp(value[t], old_value[t] - clip, old_value[t] + clip);
      const double clipped = kept - returns[t];
      if (clipped * clipped > loss) {
        loss = clipped * clipped;
        slope = kept == value[t] ? 2 * clipped : 0;
      }
    }
    result.loss += weight[t] * 0.5 * loss;
    result.d_value.push_back(weight[t] * 0.5 * slope);
  }
  return result;
}

}  // namespace weft
