// The acting side of methods that learn from a model's own answers: prompts, answers, the
// reference's log-probabilities of them, and their rewards.
//
//   prompts ==prompts==> generator ==samples==> [reference ==samples==>] scorer ==samples==>
//   learner
//
// The generator reads the learner's parameters once for every step's answers: in lockstep those
// that its last answers made, with a lag those before them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dataflow/fragment.h"
#include "language/chat_model.h"
#include "language/sampling.h"
#include "rlhf/counterpart.h"
#include "rlhf/prompts.h"
#include "rlhf/rewards.h"
#include "rlhf/samples.h"

namespace weft {

struct RolloutOptions {
  std::string model;  // path
  Precision precision = Precision::kBFloat16;
  PromptConfig prompts_from;
  EpisodeConfig episodes;
  uint64_t seed = 1;
  int64_t prompts = 16;            // a step
  int64_t group = 8;               // answers to each
  int64_t evaluate_every = 0;      // steps, from the first on; 0: never
  int64_t evaluation_samples = 4;  // answers to each held-out prompt
  int64_t max_new_tokens = 0;
  int64_t micro_batch_tokens = 2048;
  int64_t show_every = 0;
  SamplingOptions sampling;
};

// Output "prompts": those of the next step, as fast as they are read; before it, when an evaluation
// is due, those that are held out.
FragmentFactory PromptSource(const RolloutOptions& options);
// Inputs "prompts" and "parameters" (a transformer's snapshot), output "samples".
FragmentFactory GeneratorFragment(const RolloutOptions& options);
// From "samples" to "samples" with what the start model thinks of them (reference_model.h), which
// may share the base of adapters that come in at "parameters".
FragmentFactory ReferenceFragment(const RolloutOptions& options, bool shares_base);
// From "unscored" to "samples" with their rewards.
FragmentFactory ScorerFragment(const RolloutOptions& options, std::function<RewardSum()> reward);

// The answers as rewards see them; views of `samples`. Of an episode the answer is the last turn,
// and its prompt all before.
std::vector<ScoredAnswer> ScoredAnswers(const Samples& samples, const Tokenizer& tokenizer);
// log p of all answers' tokens [A] at a temperature, in passes of about `tokens` tokens.
std::vector<float> AnswerLogProbabilities(const Context& context, Transformer& model,
                                          const Samples& samples, int64_t tokens,
                                          double temperature);

}  // namespace weft
