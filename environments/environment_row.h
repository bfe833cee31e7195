// One environment with the buffers of its time step: what verify, conformance and planning step by
// hand.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "environments/environment.h"

namespace weft {

// Appends the elements of a leaf of any dtype that environments write.
void AppendNumbers(const Tensor& leaf, std::vector<double>& values);

class EnvironmentRow {
 public:
  explicit EnvironmentRow(std::unique_ptr<Environment> environment);

  Environment& environment() { return *environment_; }
  const EnvironmentSpec& spec() const { return environment_->spec(); }

  void Reset(Rng& rng) { environment_->Reset(rng, row()); }
  // action: canonical form, plus the start of a discrete space.
  void Step(ActionRow action, Rng& rng) { environment_->Step(action, rng, row()); }
  // Takes over a state and observes it, as after a reset.
  void SetState(std::span<const double> state);

  std::vector<double> Observation() const;  // all leaves, in order
  std::vector<double> State() const;
  std::vector<double> Info() const;
  double reward() const { return reward_; }
  double discount() const { return discount_; }
  StepType type() const { return type_; }

 private:
  StepRow row() { return {ObservationRow(leaves_.data()), reward_, discount_, type_}; }

  std::unique_ptr<Environment> environment_;
  std::vector<Tensor> buffers_;  // of the leaves, in their own dtypes
  std::vector<std::byte*> leaves_;
  double reward_ = 0, discount_ = 1;
  StepType type_ = StepType::kFirst;
};

}  // namespace weft
