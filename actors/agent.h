// What acts: turns the time steps of N rows into actions, with the parameters that a learner
// published. One Agent serves training actors, evaluators, exported and embedded policies, so they
// cannot disagree.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/random.h"
#include "tensor/tensor_map.h"

namespace weft {

class OnnxGraph;

struct ActRequest {
  const TensorMap& step;  // leaves of a time step of N rows: observation leaves, type, ...
  bool explore = true;    // false: the mode of the policy, no randomness
  int64_t env_steps = 0;  // steps of the whole run before this one, for schedules and warm-up
  std::span<Rng> rngs;    // one per row; draws of a row never depend on other rows
};

class Agent {
 public:
  virtual ~Agent() = default;

  // Takes over a published snapshot; names and shapes as the learner of the same algorithm
  // publishes them.
  virtual void Load(const TensorMap& snapshot) = 0;

  // Writes `action` [N] or [N, A] in the canonical form of the action space, and whatever else the
  // learner of the algorithm wants to know of the choice (log_prob). Rows whose step type is kFirst
  // begin with a zero policy state.
  virtual void Act(const ActRequest& request, TensorMap& chosen) = 0;

  // Appends the policy to a graph (nn/onnx.h): the observation leaves are its inputs, the mode, as
  // the environment takes it, is its output "action". Recurrent states are inputs state.* and
  // outputs next_state.*.
  virtual void Export(OnnxGraph& graph) const = 0;

  // Recurrent state, one row per environment row; empty for agents without memory.
  virtual TensorMap State() const { return {}; }
  virtual void SetState(const TensorMap& state) { (void)state; }
};

// Makes an agent for so many rows of a batch, which may be those of several agents each.
using AgentFactory = std::function<std::unique_ptr<Agent>(int64_t rows)>;

}  // namespace weft
