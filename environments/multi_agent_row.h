// One multi-agent environment with the buffers of its time step: what verify and conformance step
// by hand. As EnvironmentRow, with a row for each agent.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "environments/multi_agent.h"
#include "tensor/tensor.h"

namespace weft {

class MultiAgentRow {
 public:
  explicit MultiAgentRow(std::unique_ptr<MultiAgentEnvironment> environment);

  MultiAgentEnvironment& environment() { return *environment_; }
  const EnvironmentSpec& spec() const { return environment_->spec(); }

  void Reset(Rng& rng);
  // actions [G] or [G, A], in the canonical form of the row. Absent agents are left as they are.
  void Step(const Tensor& actions, Rng& rng);
  // Takes over a state and observes it, as after a reset with all agents there.
  void SetState(std::span<const double> state);

  std::vector<double> Observation() const;  // all leaves [G, ..], in order
  // Of one agent: its own part of the first leaf.
  std::vector<double> Observation(int64_t agent) const;
  std::vector<double> State() const;
  double reward(int64_t agent) const { return reward_[static_cast<size_t>(agent)]; }
  double discount(int64_t agent) const { return discount_[static_cast<size_t>(agent)]; }
  StepType type(int64_t agent) const { return type_[static_cast<size_t>(agent)]; }
  bool over() const;

 private:
  AgentRows rows();

  std::unique_ptr<MultiAgentEnvironment> environment_;
  std::vector<Tensor> buffers_;  // of the leaves [G, ..], in their own dtypes
  std::vector<std::byte*> leaves_;
  std::vector<int64_t> leaf_bytes_;
  std::vector<double> reward_, discount_;  // [G]
  std::vector<StepType> type_;
};

}  // namespace weft
