// Sampling against hand-computed penalties and counts; verify_layers.h compares probabilities with
// the reference's.
#include "language/sampling.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

#include "base/check.h"

namespace weft {
namespace {

using testing::ElementsAre;

// Worked by hand: case 73 of faults that users met.
TEST(Penalties, LookAtPromptAndAnswerAsTheyShould) {
  const std::vector<int32_t> all = {0, 2, 2, 3, 3, 4}, answer = {3, 3, 4};
  std::vector<float> logits = {2, 1, -1, 0.5f, 0};
  ApplyPenalties({.repetition_penalty = 1.5}, all, answer, logits);
  EXPECT_THAT(logits, ElementsAre(2 / 1.5f, 1, -1.5f, 0.5f / 1.5f, 0));
  logits = {2, 1, -1, 0.5f, 0};
  ApplyPenalties({.presence_penalty = 0.4, .frequency_penalty = 0.25}, all, answer, logits);
  EXPECT_FLOAT_EQ(logits[0], 2);
  EXPECT_FLOAT_EQ(logits[3], -0.4f);
  EXPECT_FLOAT_EQ(logits[4], -0.65f);
}

TEST(Sample, TheLikeliestAtTemperatureZero) {
  std::vector<float> logits = {0, 3, 3, -1};
  const SampledToken token = Sample({}, {.temperature = 0}, logits, 0.99);
  EXPECT_EQ(token.id, 1);  // the lowest of equals
  EXPECT_NEAR(token.log_probability, 3 - std::log(1 + 2 * std::exp(3) + std::exp(-1)), 1e-6);
}

// Over an even grid of draws every token comes as often as its probability says.
TEST(Sample, DrawsEachTokenAsOftenAsItsProbability) {
  std::vector<float> logits(2500, -9);
  logits[7] = 1;
  logits[1030] = 0;
  logits[2499] = 2;
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit / 0.5);
  for (const SamplingOptions& options :
       {SamplingOptions{.temperature = 0.5}, SamplingOptions{.temperature = 0.5, .top_k = 2499}}) {
    std::vector<int> counts(logits.size());
    constexpr int kDraws = 20000;
    for (int i = 0; i < kDraws; ++i) {
      std::vector<float> copy = logits;
      const SampledToken token = Sample({}, options, copy, (i + 0.5) / kDraws);
      ++counts[token.id];
      if (i > 0) continue;
      EXPECT_NEAR(token.log_probability, logits[token.id] / 0.5 - std::log(sum), 1e-4);
    }
    for (const size_t id : {size_t{7}, size_t{1030}, size_t{2499}}) {
      EXPECT_NEAR(counts[id], kDraws * std::exp(logits[id] / 0.5) / sum, 2) << id;
    }
  }
}

// By the definition, over all tokens in falling order.
Candidates TruncatedByDefinition(const SamplingOptions& options, const std::vector<float>& logits) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::stable_sort(ids, std::greater(), [&](int32_t id) { return logits[id]; });
  if (options.top_k > 0) ids.resize(std::min(ids.size(), static_cast<size_t>(options.top_k)));
  std::vector<double> p;
  double total = 0;
  for (const int32_t id : ids) {
    p.push_back(std::exp((double{logits[id]} - logits[ids[0]]) / options.temperature));
    total += p.back();
  }
  Candidates kept;
  double mass = 0, rest = total;
  for (size_t i = 0; i < ids.size(); rest -= p[i++]) {
    const bool enough = options.top_p < 1 && rest <= (1 - options.top_p) * total;
    if (i > 0 && (enough || p[i] < options.min_p)) break;
    kept.ids.push_back(ids[i]);
    kept.probabilities.push_back(p[i]);
    mass += p[i];
  }
  for (double& x : kept.probabilities) x /= mass;
  return kept;
}

TEST(Truncate, LeavesWhatItsDefinitionLeaves) {
  Rng rng(1, Purpose::kTest);
  std::vector<float> logits(5000);
  for (float& logit : logits) logit = static_cast<float>(4 * rng.Normal());
  for (const double temperature : {0.2, 1.0, 5.0}) {
    for (const SamplingOptions& options :
         {SamplingOptions{.temperature = temperature, .top_p = 0.9},
          SamplingOptions{.temperature = temperature, .top_p = 0.999999},
          SamplingOptions{.temperature = temperature, .min_p = 0.01},
          SamplingOptions{.temperature = temperature, .top_k = 40},
          SamplingOptions{
              .temperature = temperature, .top_k = 300, .top_p = 0.95, .min_p = 1e-3}}) {
      const Candidates got = Truncate({}, options, logits);
      const Candidates want = TruncatedByDefinition(options, logits);
      ASSERT_EQ(got.ids, want.ids);
      for (size_t i = 0; i < got.ids.size(); ++i) {
        EXPECT_NEAR(got.probabilities[i], want.probabilities[i], 1e-12) << i;
      }
    }
  }
}

TEST(SamplingOptions, RefusesWhatMakesNoSense) {
  for (const SamplingOptions& options :
       {SamplingOptions{.temperature = -1}, SamplingOptions{.top_k = -1},
        SamplingOptions{.top_p = 0}, SamplingOptions{.top_p = 1.5}, SamplingOptions{.min_p = 2},
        SamplingOptions{.repetition_penalty = 0}}) {
    EXPECT_THROW(options.Check(), Error);
  }
}

}  // namespace
}  // namespace weft
