// What the environments on Box2D share. An episode is a function of the random stream that its
// reset was given and of one record per step: the action, and what the step drew. These numbers are
// the state that GetState gives, Save keeps and SetState plays again from the reset on, because
// Box2D's own state (impulses of warm starts, the order of contacts, the shape of its trees) can be
// neither read nor set. The copy is exact, and takes as long as the steps did.
//
// Every episode begins with a new world: one that is emptied keeps an order of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "environments/environment.h"

namespace weft {

class Box2dEnvironment : public Environment {
 public:
  const EnvironmentSpec& spec() const final { return *spec_; }
  void Reset(Rng& rng, StepRow out) final;
  void Step(ActionRow action, Rng& rng, StepRow out) final;

  // Nothing before the first reset; then the random stream at the reset as six numbers (seed,
  // stream and position, each as its lower and upper half), then the records of the steps.
  void GetState(std::vector<double>& state) const final { state = history_; }
  // Throws Error(kInvalidArgument) for numbers that no episode has.
  void SetState(std::span<const double> state) final;
  // Copies observation_.
  void Observe(ObservationRow out) override;

 protected:
  struct Outcome {
    double reward = 0;
    bool terminal = false;
  };

  // record: numbers that a step leaves in the state.
  Box2dEnvironment(EnvironmentSpec spec, size_t record);

  // Makes the world of a new episode.
  virtual void Begin(Rng& rng) = 0;
  // What the action and chance do in this step, as numbers of [-1, 1].
  virtual void Record(ActionRow action, Rng& rng, std::span<double> record) = 0;
  // One step of the world; depends on nothing but the world and the record.
  virtual Outcome Play(std::span<const double> record) = 0;

  // After the last step; empty, and for the derived class to make, when it is not of f32.
  std::vector<float> observation_;

 private:
  void Check(std::span<const double> state) const;

  size_t record_;
  std::vector<double> history_;
  std::unique_ptr<EnvironmentSpec> spec_;
};

}  // namespace weft
