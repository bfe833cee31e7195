#include "rlhf/answer_evaluation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "rlhf/rollout.h"

namespace weft {
namespace {

// The mean over prompts and its standard error.
void Mean(std::span<const double> reward, int64_t samples, AnswerEvaluation::Result& result) {
  const auto prompts = std::ssize(reward) / samples;
  std::vector<double> means;
  for (int64_t p = 0; p < prompts; ++p) {
    const auto first = reward.begin() + p * samples;
    means.push_back(std::accumulate(first, first + samples, 0.0) / static_cast<double>(samples));
    result.pass += std::any_of(first, first + samples, [](double r) { return r >= 1; });
  }
  const auto count = static_cast<double>(prompts);
  result.mean = std::accumulate(means.begin(), means.end(), 0.0) / count;
  result.pass /= count;
  double squares = 0;
  for (const double mean : means) squares += (mean - result.mean) * (mean - result.mean);
  if (prompts > 1) result.error = std::sqrt(squares / (count - 1) / count);
}

double Perplexity(std::span<const float> log_p) {
  const double sum = std::accumulate(log_p.begin(), log_p.end(), 0.0);
  return std::exp(-sum / static_cast<double>(log_p.size()));
}

// The share of pairs that b wins (half of the draws), and its interval.
struct WinRate {
  double mean = 0, low = 0, high = 0;
};
WinRate Wins(std::span<const double> a, std::span<const double> b, int64_t samples, uint64_t seed) {
  const auto prompts = std::ssize(a) / samples;
  std::vector<double> share(static_cast<size_t>(prompts));
  for (int64_t i = 0; i < std::ssize(a); ++i) {
    share[i / samples] += (b[i] > a[i]    ? 1.0
                           : b[i] == a[i] ? 0.5
                                          : 0.0) /
                          static_cast<double>(samples);
  }
  Rng rng(seed, Purpose::kEvaluation, uint64_t{1} << 40);
  std::vector<double> means;
  for (int resample = 0; resample < 1000; ++resample) {
    double sum = 0;
    for (int64_t i = 0; i < prompts; ++i) sum += share[rng.Below(static_cast<uint64_t>(prompts))];
    means.push_back(sum / static_cast<double>(prompts));
  }
  std::ranges::sort(means);
  return {.mean = std::accumulate(share.begin(), share.end(), 0.0) / static_cast<double>(prompts),
          .low = means[25],
          .high = means[974]};
}

}  // namespace

AnswerEvaluation::Result AnswerEvaluation::Of(Transformer& model, Transformer* start) const {
  Samples all;
  all.group = samples;
  all.seed = seed;
  all.first_sample = kEvaluationStreams + samples;
  for (const Prompt& prompt : prompts) {
    all.prompts.push_back(prompt.ids);
    all.expected.push_back(prompt.expected);
  }
  speaker.Speak(context, model, all);
  const std::vector<ScoredAnswer> texts = ScoredAnswers(all, speaker.tokenizer());
  Result result;
  result.reward = reward.Score(context, texts, &result.parts);
  Mean(result.reward, samples, result);
  RewardList repetition;
  repetition.Add("repetition");
  for (const double r : RewardSum(repetition, {}).Score(context, texts)) result.repetition -= r;
  const auto count = static_cast<double>(texts.size());
  result.repetition /= count;
  result.tokens = static_cast<double>(all.log_p.size()) / count;
  result.finished = static_cast<double>(std::ranges::count(all.finished, uint8_t{1})) / count;
  if (start != nullptr) {
    const std::vector<float> before =
        AnswerLogProbabilities(context, *start, all, 2048, speaker.temperature());
    for (size_t t = 0; t < before.size(); ++t) {
      result.kl += (static_cast<double>(all.log_p[t]) - before[t]) / count;
    }
  }
  result.answers = std::move(all);
  return result;
}

std::vector<LanguageMethod::Figure> AnswerEvaluation::Compare(Transformer& start,
                                                              Transformer& trained) const {
  if (prompts.empty()) return {};
  const Result before = Of(start, nullptr), after = Of(trained, &start);
  const WinRate wins = Wins(before.reward, after.reward, samples, seed);
  const std::vector<float> now =
      AnswerLogProbabilities(context, trained, before.answers, 2048, speaker.temperature());
  std::vector<LanguageMethod::Figure> figures = {
      {"held_out_before", before.mean},
      {"held_out_before_error", before.error},
      {"held_out", after.mean},
      {"held_out_error", after.error},
      {"win_rate", wins.mean},
      {"win_rate_low", wins.low},
      {"win_rate_high", wins.high},
      {"pass_at_" + std::to_string(samples) + "_before", before.pass},
      {"pass_at_" + std::to_string(samples), after.pass},
      {"kl", after.kl},
      {"own_perplexity_before", Perplexity(before.answers.log_p)},
      {"own_perplexity", Perplexity(now)},
      {"finished", after.finished},
      {"answer_tokens_before", before.tokens},
      {"answer_tokens", after.tokens},
      {"repetition_before", before.repetition},
      {"repetition", after.repetition}};
  if (after.parts.size() > 1) {
    for (size_t i = 0; i < after.parts.size(); ++i) {
      figures.push_back({"held_out_" + after.parts[i].name + "_before", before.parts[i].mean()});
      figures.push_back({"held_out_" + after.parts[i].name, after.parts[i].mean()});
    }
  }
  return figures;
}

}  // namespace weft
