#include "environments/multi_agent_row.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "environments/environment_row.h"

namespace weft {

MultiAgentRow::MultiAgentRow(std::unique_ptr<MultiAgentEnvironment> environment)
    : environment_(std::move(environment)),
      reward_(spec().agents.size()),
      discount_(spec().agents.size(), 1),
      type_(spec().agents.size(), StepType::kLast) {
  for (const Leaf& leaf : spec().observation) {
    buffers_.push_back(Tensor::Zeros(leaf.shape.Prepend(spec().agent_count()), leaf.dtype));
    leaves_.push_back(buffers_.back().raw());
    leaf_bytes_.push_back(static_cast<int64_t>(buffers_.back().bytes()) / spec().agent_count());
  }
}

AgentRows MultiAgentRow::rows() {
  return {leaves_.data(), leaf_bytes_.data(), reward_, discount_, type_};
}

void MultiAgentRow::Reset(Rng& rng) {
  std::ranges::fill(type_, StepType::kLast);
  std::ranges::fill(reward_, 0.0);
  std::ranges::fill(discount_, 1.0);
  environment_->Reset(rng, rows());
}

void MultiAgentRow::Step(const Tensor& actions, Rng& rng) {
  std::ranges::fill(reward_, 0.0);
  std::ranges::fill(discount_, 1.0);
  const auto bytes = static_cast<int64_t>(actions.bytes()) / spec().agent_count();
  environment_->Step({actions.raw(), bytes, actions.dtype()}, rng, rows());
}

void MultiAgentRow::SetState(std::span<const double> state) {
  environment_->SetState(state);
  environment_->Observe(rows());
  for (int64_t agent = 0; agent < spec().agent_count(); ++agent) rows().First(agent);
}

std::vector<double> MultiAgentRow::Observation() const {
  std::vector<double> values;
  for (const Tensor& buffer : buffers_) AppendNumbers(buffer, values);
  return values;
}

std::vector<double> MultiAgentRow::Observation(int64_t agent) const {
  std::vector<double> values;
  AppendNumbers(buffers_[0].Row(agent), values);
  values.resize(static_cast<size_t>(spec().agents[static_cast<size_t>(agent)].observation_size));
  return values;
}

std::vector<double> MultiAgentRow::State() const {
  std::vector<double> state;
  environment_->GetState(state);
  return state;
}

bool MultiAgentRow::over() const {
  return std::ranges::all_of(type_, [](StepType type) { return type == StepType::kLast; });
}

}  // namespace weft
