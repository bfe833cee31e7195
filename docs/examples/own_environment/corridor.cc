// A corridor of `length` cells with a lamp at one end: start in the middle, walk to the lamp.
// Reward 1 at the lit end, 0 at the dark one; the best return is 1, walking blindly gives 0.5.
#include "environments/register_environment.h"

class Corridor final : public weft::Environment {
 public:
  struct Arguments : weft::Config {  // environment.arguments in YAML
    int64_t length = 9;
    void Fields(weft::FieldVisitor& v) override {
      v.Field("length", length, "cells of the corridor", weft::Range::AtLeast(3));
    }
  };

  explicit Corridor(const Arguments& arguments) : end_(arguments.length - 1) {
    spec_.id = "Corridor-v0";
    spec_.observation = {{.name = "observation", .shape = {2}, .low = {-1}, .high = {1}}};
    spec_.action = weft::Discrete{.n = 2};  // left, right
    spec_.time_limit = 100;
  }

  const weft::EnvironmentSpec& spec() const override { return spec_; }

  void Reset(weft::Rng& rng, weft::StepRow out) override {
    cell_ = end_ / 2;
    lamp_ = rng.Below(2) == 0 ? 0 : end_;
    Observe(out.observation);
    out.First();
  }

  void Step(weft::ActionRow action, weft::Rng&, weft::StepRow out) override {
    cell_ += action.index() == 1 ? 1 : -1;
    Observe(out.observation);
    out.Next(/*step_reward=*/cell_ == lamp_ ? 1 : 0, /*terminal=*/cell_ == 0 || cell_ == end_);
  }

  void Observe(weft::ObservationRow out) override {
    out.Leaf<float>()[0] = 2 * static_cast<float>(cell_) / static_cast<float>(end_) - 1;
    out.Leaf<float>()[1] = lamp_ == 0 ? -1 : 1;
  }

  // All that the next step depends on, so that runs resume exactly.
  void GetState(std::vector<double>& state) const override {
    state = {double(cell_), double(lamp_)};
  }
  void SetState(std::span<const double> state) override {
    cell_ = static_cast<int64_t>(state[0]), lamp_ = static_cast<int64_t>(state[1]);
  }

 private:
  weft::EnvironmentSpec spec_;
  int64_t end_, cell_ = 0, lamp_ = 0;
};

WEFT_REGISTER_ENVIRONMENT(Corridor, "Corridor-v0", "walk to the lit end of a corridor")
