// The acting side of methods that learn from a model's own answers:
//
//   prompts ==prompts==> generator ==samples==> scorer ==samples==> learner ==parameters==>
//   generator
//
// In lockstep: the generator waits for the parameters that its last answers made.
#pragma once

#include <cstdint>
#include <string>

#include "dataflow/fragment.h"
#include "language/chat_model.h"
#include "language/sampling.h"

namespace weft {

struct RolloutOptions {
  std::string model;  // path
  Precision precision = Precision::kBFloat16;
  std::string task;
  uint64_t seed = 1;
  int64_t prompts = 16;  // a step
  int64_t group = 8;     // answers to each
  int64_t max_new_tokens = 0;
  SamplingOptions sampling;
};

// Output "prompts": those of the next step, as fast as they are read.
FragmentFactory PromptSource(const RolloutOptions& options);
// Inputs "prompts" and "parameters" (a transformer's snapshot), output "samples".
FragmentFactory GeneratorFragment(const RolloutOptions& options);
// Input "unscored", output "samples": a checkable task's verdicts, 1 or 0.
FragmentFactory TaskScorer(const RolloutOptions& options);

// The share of right answers to a task's held-out prompts, `samples` sampled ones each, and its
// standard error over prompts.
struct TaskAccuracy {
  double mean = 0, error = 0, finished = 0;
};
TaskAccuracy EvaluateTask(const Context& context, const ChatModel& chat, const Transformer& model,
                          const std::string& task, uint64_t seed, int64_t samples);

}  // namespace weft
