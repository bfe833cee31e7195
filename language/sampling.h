// Choosing the next token. In this order: repetition penalty (Keskar et al. 2019: logits of tokens
// that were there are divided by it when positive, else multiplied, once for each distinct token of
// prompt and answer), presence and frequency penalties (of the answer alone), temperature, top-k
// (ties with the k-th are kept), top-p (Holtzman et al. 2020: the least likely tokens that have 1 -
// p of the mass or less are dropped), min-p (those with at least min_p times the largest
// probability).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "tensor/context.h"

namespace weft {

struct SamplingOptions {
  double temperature = 1;  // 0: the likeliest token
  int64_t top_k = 0;       // 0: all
  double top_p = 1, min_p = 0;
  double repetition_penalty = 1, presence_penalty = 0, frequency_penalty = 0;

  // Throws Error(kInvalidArgument) naming the option and its range.
  void Check() const;
  bool penalised() const {
    return repetition_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0;
  }
  bool truncated() const { return top_k > 0 || top_p < 1 || min_p > 0; }
};

struct SampledToken {
  int32_t id;
  // Of the distribution sampled from; of that at temperature 1 where the likeliest is taken. Where
  // nothing is truncated or penalised it has the bits of ScoreTokens at that temperature.
  float log_probability;
};

// In place, before everything else. previous: prompt and answer; answer: its end.
void ApplyPenalties(const SamplingOptions& options, std::span<const int32_t> previous,
                    std::span<const int32_t> answer, std::span<float> logits);

// The tokens left by truncation and their probabilities, in falling order (equal ones by id).
struct Candidates {
  std::vector<int32_t> ids;
  std::vector<double> probabilities;
};
Candidates Truncate(const Context& context, const SamplingOptions& options,
                    std::span<const float> logits);

// logits [V] after penalties are used up; `uniform` in [0, 1) decides.
SampledToken Sample(const Context& context, const SamplingOptions& options, std::span<float> logits,
                    double uniform);

// The `count` likeliest tokens of the distribution that Sample draws from (of that at temperature 1
// where it takes the likeliest), in falling order; fewer where truncation left fewer. count 0:
// none.
std::vector<SampledToken> Likeliest(const Context& context, const SamplingOptions& options,
                                    std::span<const float> logits, int64_t count);

}  // namespace weft
