// What a model is worth by its answers to held-out prompts, beside the model it began as.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "language/transformer.h"
#include "learners/method.h"
#include "rlhf/prompts.h"
#include "rlhf/rewards.h"
#include "rlhf/speaker.h"

namespace weft {

struct AnswerEvaluation {
  const Context& context;
  const Speaker& speaker;
  std::span<const Prompt> prompts;
  RewardSum& reward;
  uint64_t seed = 1;
  int64_t samples = 4;  // sampled answers to each prompt

  struct Result {
    std::vector<double> reward;                       // [prompts * samples]
    std::vector<RewardSum::Part> parts;               // that it is made of
    double mean = 0, error = 0;                       // standard error over prompts
    double finished = 0, tokens = 0, repetition = 0;  // shares, and tokens said an answer
    double pass = 0;  // share of prompts with an answer worth 1 or more
    double kl = 0;    // nats an answer from `start`, estimated by the answers
    Samples answers;
  };
  // The same draws for every model. start: null, or what kl is measured from.
  Result Of(Transformer& model, Transformer* start) const;
  // held_out_before, held_out, .. (of several rewards each for itself, too), win_rate with its 95 %
  // interval (bootstrap over prompts), kl, and own_perplexity of the start model's answers to both
  // models.
  std::vector<LanguageMethod::Figure> Compare(Transformer& start, Transformer& trained) const;
};

}  // namespace weft
