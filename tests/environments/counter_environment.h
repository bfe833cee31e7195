// A transparent environment for tests of everything around an environment: f64 observation (steps
// of the episode, the last action), a random u8 leaf, reward = the action, terminal after `length`
// steps. Actions: Discrete(5, start=1) or Box [-2, 4].
#pragma once

#include <limits>
#include <stdexcept>

#include "environments/register_environment.h"

namespace weft {

class CounterEnvironment final : public Environment {
 public:
  static constexpr double kStepNanoseconds = 1e6;  // expensive: batches of it use the pool

  struct Arguments : Config {
    int64_t length = 3;
    bool continuous = false, unbounded = false;
    int64_t fail_at = -1;  // this step throws
    int64_t nan_at = -1;   // this step observes a NaN
    void Fields(FieldVisitor& v) override {
      v.Field("length", length, "steps of an episode", Range::AtLeast(1));
      v.Field("continuous", continuous, "real actions");
      v.Field("unbounded", unbounded, "real actions without bounds");
    }
  };

  explicit CounterEnvironment(const Arguments& arguments)
      : arguments_(arguments), spec_(std::make_unique<EnvironmentSpec>()) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    *spec_ = {.id = "Counter-v0",
              .observation = {{.name = "position", .shape = {2}, .dtype = DType::kFloat64},
                              {.name = "noise", .shape = {}, .dtype = DType::kUInt8}},
              .action = Discrete{.n = 5, .start = 1},
              .time_limit = 10};
    if (arguments.continuous) spec_->action = Box{.low = {-2}, .high = {4}};
    if (arguments.unbounded) spec_->action = Box{.low = {-kInfinity}, .high = {kInfinity}};
  }

  const EnvironmentSpec& spec() const override { return *spec_; }
  void Reset(Rng& rng, StepRow out) override {
    steps_ = 0;
    action_ = 0;
    noise_ = static_cast<uint8_t>(rng.Below(256));
    Observe(out.observation);
    out.First();
  }
  void Step(ActionRow action, Rng& rng, StepRow out) override {
    ++steps_;
    if (steps_ == arguments_.fail_at) throw std::runtime_error("the cable broke");
    action_ = spec_->action.As<Box>() ? action.real() : static_cast<double>(action.index());
    if (steps_ == arguments_.nan_at) action_ = std::numeric_limits<double>::quiet_NaN();
    noise_ = static_cast<uint8_t>(rng.Below(256));
    Observe(out.observation);
    out.Next(steps_ == arguments_.nan_at ? 0 : action_, steps_ == arguments_.length);
  }
  void GetState(std::vector<double>& state) const override {
    state = {static_cast<double>(steps_), action_, static_cast<double>(noise_)};
  }
  void SetState(std::span<const double> state) override {
    steps_ = static_cast<int64_t>(state[0]);
    action_ = state[1];
    noise_ = static_cast<uint8_t>(state[2]);
  }
  void Observe(ObservationRow out) override {
    out.Leaf<double>(0)[0] = static_cast<double>(steps_);
    out.Leaf<double>(0)[1] = action_;
    *out.Leaf<uint8_t>(1) = noise_;
  }
  void Save(Writer& out) const override {
    out.Write(steps_);
    out.Write(action_);
    out.Write(noise_);
  }
  void Load(Reader& in) override {
    steps_ = in.Read<int64_t>();
    action_ = in.Read<double>();
    noise_ = in.Read<uint8_t>();
  }

 private:
  Arguments arguments_;
  int64_t steps_ = 0;
  double action_ = 0;
  uint8_t noise_ = 0;
  std::unique_ptr<EnvironmentSpec> spec_;
};

}  // namespace weft
