#include "environments/toy_text/tabular_environment.h"

#include <utility>

#include "base/check.h"

namespace weft {

const Outcome& Outcomes::Draw(Rng& rng) const {
  if (count_ == 1) return list_[0];
  const double draw = rng.Uniform();
  double sum = 0;
  for (size_t i = 0; i + 1 < count_; ++i) {
    sum += list_[i].probability;
    if (sum > draw) return list_[i];
  }
  return list_[count_ - 1];
}

TabularEnvironment::TabularEnvironment(EnvironmentSpec spec, int64_t states,
                                       std::vector<int64_t> starts)
    : state_(starts.front()),
      spec_(std::make_unique<EnvironmentSpec>(std::move(spec))),
      starts_(std::make_unique<const std::vector<int64_t>>(std::move(starts))),
      states_(states) {
  spec_->observation.insert(spec_->observation.begin(),
                            {.name = "observation",
                             .shape = {},
                             .dtype = DType::kInt64,
                             .low = {0},
                             .high = {static_cast<double>(states - 1)}});
  spec_->info = {"prob"};
}

void TabularEnvironment::Reset(Rng& rng, StepRow out) {
  const uint64_t count = starts_->size();
  state_ = (*starts_)[count == 1 ? 0 : rng.Below(count)];
  probability_ = 1;
  Observe(out.observation);
  out.First();
}

void TabularEnvironment::Step(ActionRow action, Rng& rng, StepRow out) {
  const Outcomes outcomes = OutcomesOf(state_, action.index());
  const Outcome& outcome = outcomes.Draw(rng);
  state_ = outcome.next;
  probability_ = outcome.probability;
  Observe(out.observation);
  out.Next(outcome.reward, outcome.terminal);
}

void TabularEnvironment::GetState(std::vector<double>& state) const {
  state.assign(1, static_cast<double>(state_));
}

void TabularEnvironment::SetState(std::span<const double> state) {
  WEFT_CHECK(state.size() == 1 && state[0] >= 0 && state[0] < static_cast<double>(states_))
      << "state of " << spec_->id << ": its number lies below " << states_;
  state_ = static_cast<int64_t>(state[0]);
  probability_ = 1;
}

}  // namespace weft
