// Base of finite Markov decision processes (Gymnasium's toy text family): the state is one number,
// and each action leads to one of at most three outcomes, which derived classes compute. Nothing is
// tabulated, so a row costs some hundred bytes whatever the number of states. The observation is
// the state, an i64 leaf [] with bounds 0 and S - 1, where S is the number of states.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "environments/environment.h"

namespace weft {

struct Outcome {
  double probability = 1;
  int64_t next = 0;  // state
  double reward = 0;
  bool terminal = false;
};

// What one action may lead to, in the order of Gymnasium's table P[state][action].
class Outcomes {
 public:
  static constexpr size_t kMost = 3;

  void Add(const Outcome& outcome) { list_[count_++] = outcome; }
  std::span<const Outcome> list() const { return {list_.data(), count_}; }
  // One of them with its probability; draws only when there is a choice.
  const Outcome& Draw(Rng& rng) const;

 private:
  std::array<Outcome, kMost> list_;
  size_t count_ = 0;
};

class TabularEnvironment : public Environment {
 public:
  static constexpr double kStepNanoseconds = 25;

  virtual Outcomes OutcomesOf(int64_t state, int64_t action) const = 0;
  // The first state is uniform over these.
  const std::vector<int64_t>& starts() const { return *starts_; }
  int64_t states() const { return states_; }

  const EnvironmentSpec& spec() const final { return *spec_; }
  void Reset(Rng& rng, StepRow out) override;
  void Step(ActionRow action, Rng& rng, StepRow out) override;

  // The number of the state, and what a derived class adds.
  void GetState(std::vector<double>& state) const override;
  void SetState(std::span<const double> state) override;
  void Observe(ObservationRow out) override { *out.Leaf<int64_t>() = state_; }
  // "prob": the probability of the outcome that came, 1 at a reset.
  void Info(std::span<double> values) const override { values[0] = probability_; }

 protected:
  // spec: without observation and info, which are added here.
  TabularEnvironment(EnvironmentSpec spec, int64_t states, std::vector<int64_t> starts);

  int64_t state_;

 private:
  std::unique_ptr<EnvironmentSpec> spec_;
  std::unique_ptr<const std::vector<int64_t>> starts_;
  int64_t states_;
  double probability_ = 1;
};

}  // namespace weft
