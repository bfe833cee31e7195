#include "language/sampling.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "base/check.h"
#include "tensor/kernels_transformer.h"

namespace weft {
namespace {

void CheckRange(const char* name, double value, bool fits, const char* range) {
  if (fits) return;
  throw Error(ErrorCode::kInvalidArgument,
              std::string(name) + " is " + std::to_string(value) + ", but must be " + range);
}

int32_t ArgMax(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

constexpr int64_t kBlock = 1024;

// weights[i] = exp((logits[i] - shift) * scale) in f32; their sums by blocks.
std::vector<double> WeightsByBlocks(const Context& context, std::span<const float> logits,
                                    float shift, float scale, Tensor& weights) {
  const int64_t count = std::ssize(logits);
  weights = Tensor::Empty({count});
  float* const p = weights.data<float>().data();
  kernels::Affine(context, count, 1, -shift, logits.data(), p);
  if (scale != 1) kernels::Affine(context, count, scale, 0, p, p);
  kernels::UnaryForward(context, Unary::kExp, count, p, p);
  std::vector<double> sums;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    sums.push_back(
        kernels::SumAll({.isa = context.isa}, std::min(kBlock, count - begin), p + begin));
  }
  return sums;
}

// The first id at which the running sum of exp(logits - log_sum) passes `uniform` of the whole:
// blocks first, then within the block.
int32_t Draw(const Context& context, std::span<const float> logits, float log_sum, double uniform) {
  Tensor weights;
  const std::vector<double> sums = WeightsByBlocks(context, logits, log_sum, 1, weights);
  const float* const p = weights.data<float>().data();
  double left = uniform * std::accumulate(sums.begin(), sums.end(), 0.0);
  size_t block = 0;
  while (block + 1 < sums.size() && left >= sums[block]) left -= sums[block++];
  const int64_t begin = static_cast<int64_t>(block) * kBlock;
  const int64_t end = std::min(begin + kBlock, std::ssize(logits));
  int64_t last = begin;  // the last with any mass: rounding may leave some of `left`
  for (int64_t i = begin; i < end; ++i) {
    if (p[i] <= 0) continue;
    last = i;
    left -= p[i];
    if (left < 0) break;
  }
  return static_cast<int32_t>(last);
}

// Divides logits by the temperature (1 where the likeliest is taken); log sum exp of what is there
// then.
float ScaleLogits(const Context& context, const SamplingOptions& options, std::span<float> logits) {
  const float scale = options.temperature == 0 ? 1.0f : 1 / static_cast<float>(options.temperature);
  float log_sum = 0;
  kernels::LogitStatistics(context, 1, std::ssize(logits), scale, 0, logits.data(), &log_sum,
                           nullptr);
  return log_sum;
}

// Sum of exp((logit - largest) / temperature), in f32 by blocks where that decides top-p.
double SumOfWeights(const Context& context, const SamplingOptions& options,
                    std::span<const float> logits, float largest) {
  constexpr double kFine = 1e-3;  // of the mass, of which f32 knows 1e-7
  if (1 - options.top_p < kFine) {
    double sum = 0;
    for (const float logit : logits) {
      sum += std::exp((double{logit} - largest) / options.temperature);
    }
    return sum;
  }
  Tensor weights;
  const std::vector<double> sums = WeightsByBlocks(
      context, logits, largest, static_cast<float>(1 / options.temperature), weights);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

// The ids among which truncation chooses, ascending: all but those that are too unlikely to be
// left. total: of the weights of all tokens, where top-p asks for it.
std::vector<int32_t> Contenders(const SamplingOptions& options, std::span<const float> logits,
                                float largest, double total) {
  std::vector<int32_t> ids;
  // Times the temperature, below the largest.
  for (double reach = 8;; reach = reach < 1000 ? 2 * reach : INFINITY) {
    const double least = largest - reach * options.temperature;
    ids.clear();
    for (int32_t id = 0; id < std::ssize(logits); ++id) {
      if (!(logits[id] < least)) ids.push_back(id);
    }
    if (ids.size() == logits.size() || std::isinf(reach)) return ids;
    if (options.top_k > 0) {
      if (std::ssize(ids) >= options.top_k) return ids;
      continue;
    }
    if (std::exp(-reach) < options.min_p) return ids;
    double mass = 0;
    for (const int32_t id : ids) {
      mass += std::exp((double{logits[id]} - largest) / options.temperature);
    }
    if (options.top_p < 1 && total - mass <= (1 - options.top_p) * total) return ids;
  }
}

}  // namespace

void SamplingOptions::Check() const {
  CheckRange("temperature", temperature, temperature >= 0 && temperature <= 100, "in 0..100");
  CheckRange("top_k", static_cast<double>(top_k), top_k >= 0, "0 (all) or more");
  CheckRange("top_p", top_p, top_p > 0 && top_p <= 1, "above 0 and at most 1");
  CheckRange("min_p", min_p, min_p >= 0 && min_p <= 1, "in 0..1");
  CheckRange("repetition_penalty", repetition_penalty,
             repetition_penalty > 0 && std::isfinite(repetition_penalty), "above 0");
  CheckRange("presence_penalty", presence_penalty, std::fabs(presence_penalty) <= 10, "in -10..10");
  CheckRange("frequency_penalty", frequency_penalty, std::fabs(frequency_penalty) <= 10,
             "in -10..10");
}

void ApplyPenalties(const SamplingOptions& options, std::span<const int32_t> previous,
                    std::span<const int32_t> answer, std::span<float> logits) {
  if (options.repetition_penalty != 1) {
    const auto penalty = static_cast<float>(options.repetition_penalty);
    for (const int32_t id : std::set<int32_t>(previous.begin(), previous.end())) {
      logits[id] = logits[id] > 0 ? logits[id] / penalty : logits[id] * penalty;
    }
  }
  if (options.presence_penalty == 0 && options.frequency_penalty == 0) return;
  std::map<int32_t, int64_t> counts;
  for (const int32_t id : answer) ++counts[id];
  for (const auto& [id, count] : counts) {
    logits[id] -= static_cast<float>(options.presence_penalty +
                                     options.frequency_penalty * static_cast<double>(count));
  }
}

Candidates Truncate(const Context& context, const SamplingOptions& options,
                    std::span<const float> logits) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  const auto weight = [&](int32_t id) {
    return std::exp((double{logits[id]} - largest) / options.temperature);
  };
  const auto before = [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  const bool all = options.top_k == 0 && options.top_p < 1;
  double total = all ? SumOfWeights(context, options, logits, largest) : 0;
  std::vector<int32_t> ids = Contenders(options, logits, largest, total);
  if (options.top_k > 0 && options.top_k < std::ssize(ids)) {
    std::nth_element(ids.begin(), ids.begin() + (options.top_k - 1), ids.end(), before);
    const float limit = logits[ids[options.top_k - 1]];
    std::erase_if(ids, [&](int32_t id) { return logits[id] < limit; });
  }
  for (size_t i = 0; i < ids.size() && options.top_k > 0; ++i) total += weight(ids[i]);

  // Falling order, as far as it is needed.
  Candidates kept;
  double mass = 0;
  const double least = options.min_p;  // times the largest weight, 1
  for (size_t sorted = 0; sorted < ids.size();) {
    const size_t next = std::min(ids.size(), std::max<size_t>(64, 4 * sorted));
    if (next < ids.size()) {
      std::nth_element(ids.begin() + sorted, ids.begin() + next, ids.end(), before);
    }
    std::sort(ids.begin() + sorted, ids.begin() + next, before);
    for (; sorted < next; ++sorted) {
      const double w = weight(ids[sorted]);
      const bool enough = options.top_p < 1 && total - mass <= (1 - options.top_p) * total;
      if (!kept.ids.empty() && (enough || w < least)) {
        sorted = ids.size();
        break;
      }
      kept.ids.push_back(ids[sorted]);
      kept.probabilities.push_back(w);
      mass += w;
    }
  }
  for (double& p : kept.probabilities) p /= mass;
  return kept;
}

SampledToken Sample(const Context& context, const SamplingOptions& options, std::span<float> logits,
                    double uniform) {
  const bool greedy = options.temperature == 0;
  if (!greedy && options.truncated()) {
    const Candidates kept = Truncate(context, options, logits);
    size_t i = 0;
    while (i + 1 < kept.ids.size() && uniform >= kept.probabilities[i]) {
      uniform -= kept.probabilities[i++];
    }
    return {kept.ids[i], static_cast<float>(std::log(kept.probabilities[i]))};
  }
  const float log_sum = ScaleLogits(context, options, logits);
  const int32_t id = greedy ? ArgMax(logits) : Draw(context, logits, log_sum, uniform);
  return {id, logits[id] - log_sum};
}

std::vector<SampledToken> Likeliest(const Context& context, const SamplingOptions& options,
                                    std::span<const float> logits, int64_t count) {
  std::vector<SampledToken> likeliest;
  if (count == 0) return likeliest;
  if (options.temperature != 0 && options.truncated()) {
    const Candidates kept = Truncate(context, options, logits);
    for (size_t i = 0; i < kept.ids.size() && std::ssize(likeliest) < count; ++i) {
      likeliest.push_back({kept.ids[i], static_cast<float>(std::log(kept.probabilities[i]))});
    }
    return likeliest;
  }
  std::vector<float> scaled(logits.begin(), logits.end());
  const float log_sum = ScaleLogits(context, options, scaled);
  std::vector<int32_t> ids(scaled.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto end = ids.begin() + std::min(count, std::ssize(ids));
  std::partial_sort(ids.begin(), end, ids.end(), [&](int32_t a, int32_t b) {
    return scaled[a] != scaled[b] ? scaled[a] > scaled[b] : a < b;
  });
  for (auto id = ids.begin(); id != end; ++id) likeliest.push_back({*id, scaled[*id] - log_sum});
  return likeliest;
}

}  // namespace weft
