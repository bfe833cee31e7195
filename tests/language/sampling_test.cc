// Sampling against the reference's probabilities, hand-computed penalties and counts.
#include "language/sampling.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "nn/safetensors.h"
#include "tests/language/reference_files.h"

namespace weft {
namespace {

using testing::ElementsAre;

struct Case {
  const char* name;
  SamplingOptions options;
};

TEST(SamplingReference, KeepsTheTokensAndProbabilitiesOfTheReference) {
  const std::string path = ReferencePath("language/maths/sampling.safetensors");
  if (path.empty()) GTEST_SKIP() << "WEFT_REFERENCE is unset: no reference data to compare with";
  const TensorMap reference = ReadSafetensors(path);
  const Case cases[] = {
      {"temperature", {.temperature = 0.7}},
      {"cold", {.temperature = 0.05}},
      {"top_k", {.top_k = 5}},
      {"top_p", {.top_p = 0.9}},
      {"top_p_small", {.top_p = 0.01}},
      {"min_p", {.min_p = 0.1}},
      {"repetition", {.repetition_penalty = 1.3}},
      {"all", {.temperature = 0.8, .top_k = 20, .top_p = 0.85, .repetition_penalty = 1.2}},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.name);
    const TensorMap data = reference.Extract(test.name);
    const Tensor logits = data.At("logits").Clone(), previous = data.At("previous_ids");
    const Tensor probabilities = data.At("probabilities"),
                 agrees = data.At("agrees_with_transformers");
    const int64_t vocabulary = logits.dim(1);
    for (int64_t row = 0; row < logits.dim(0); ++row) {
      Tensor line = logits.Row(row).Clone();
      std::vector<int32_t> ids;
      for (const int64_t id : previous.Row(row).data<int64_t>()) {
        ids.push_back(static_cast<int32_t>(id));
      }
      ApplyPenalties(test.options, ids, {}, line.data<float>());
      const Candidates kept = Truncate(test.options, line.data<float>());
      std::vector<double> got(vocabulary);
      for (size_t i = 0; i < kept.ids.size(); ++i) got[kept.ids[i]] = kept.probabilities[i];
      const auto want = probabilities.Row(row).data<double>();
      if (agrees.data<uint8_t>()[row] == 0) {  // ties: their number alone is defined
        EXPECT_EQ(std::count_if(got.begin(), got.end(), [](double p) { return p > 0; }),
                  std::count_if(want.begin(), want.end(), [](double p) { return p > 0; }))
            << "row " << row;
        continue;
      }
      for (int64_t i = 0; i < vocabulary; ++i) {
        EXPECT_NEAR(got[i], want[i], 1e-6) << "row " << row << ", token " << i;
      }
    }
  }
}

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
