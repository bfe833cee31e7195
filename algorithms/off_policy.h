// What off-policy algorithms have in common: acting into a replay table, and learning from its
// batches in lockstep.
//
//   environment ==timestep==> actor ==steps==> replay ==batch==> learner ==snapshot==> evaluator
//        ^=======action=========|  <==parameters=====^=priority====|
#pragma once

#include <vector>

#include "algorithms/algorithm.h"
#include "replay/replay_fragment.h"

namespace weft {

struct OffPolicy {
  int64_t train_every = 1;  // environment steps, over all rows, between two rounds of updates
  double gamma = 0.99;
  std::vector<LeafSpec> chosen;  // what the agent's Act writes and transitions hold
};

// The checks that go beyond single keys; throws ConfigProblem.
void CheckOffPolicy(const Algorithm& algorithm, const ReplayConfig& replay, int64_t train_every);

// Adds environment, actor, replay, the given learner and the evaluator with all their edges.
void BuildOffPolicy(FragmentGraph& graph, const Algorithm& algorithm, const ReplayConfig& replay,
                    const OffPolicy& options, FragmentFactory learner);

// What a message of the replay's output says besides the transitions.
struct BatchFacts {
  explicit BatchFacts(const Message& message);
  bool has_batch;     // else it only answers a round of steps
  bool last;          // of this round: the learner publishes after it
  int64_t env_steps;  // of the run
};

// The answer to a prioritised batch. td_error f32 [B].
Message PriorityMessage(const Message& batch, const Tensor& td_error);

}  // namespace weft
