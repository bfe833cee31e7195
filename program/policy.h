// A trained policy, ready to act: what `weft evaluate` and `weft export` use, and programs of your
// own.
#pragma once

#include <memory>
#include <string>

#include "actors/agent.h"
#include "algorithms/algorithm.h"

namespace weft {

class Policy {
 public:
  // A run (its newest verified checkpoint), by path or name, or one checkpoint folder of a run.
  // rows: environments whose observations Act takes at once, of several agents one each. Throws
  // Error naming what is missing or damaged.
  static Policy Load(const std::string& run_or_checkpoint, int64_t rows = 1);

  // The mode of the policy. observation: the leaf "observation" of spec(), [N, ..]; the action
  // is [N] or [N, A], as spec().action takes it. first: the rows that begin an episode (u8
  // [N], not 0), whose memory is cleared; matters to recurrent policies only. mask: the leaf
  // "action_mask", where spec() has one.
  Tensor Act(const Tensor& observation, const Tensor& first = {}, const Tensor& mask = {});

  const Algorithm& algorithm() const { return *algorithm_; }
  const EnvironmentSpec& spec() const { return spec_; }
  const TensorMap& parameters() const { return parameters_; }
  Agent& agent() { return *agent_; }
  int64_t steps() const { return steps_; }  // it was trained for

 private:
  std::unique_ptr<Algorithm> algorithm_;
  EnvironmentSpec spec_;
  TensorMap parameters_;
  std::unique_ptr<Agent> agent_;
  int64_t rows_ = 1, steps_ = 0;
};

}  // namespace weft
