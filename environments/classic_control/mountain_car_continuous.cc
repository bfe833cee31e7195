// MountainCarContinuous-v0: MountainCar with a real force and a price on it, with the arithmetic of
// Gymnasium 1.4's classic_control/continuous_mountain_car.py on the float32 actions of its action
// space, operation by operation. NumPy computes in the precision of its own operands and gives way
// to it with Python's constants: the state is float64 after a reset and float32 after the first
// step, the product of force and power is float32 unless the force was clipped.
#include <algorithm>
#include <array>
#include <cmath>

#include "environments/classic_control/mountain.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr double kMinPosition = -1.2, kMaxPosition = 0.6;
constexpr double kMaxSpeed = 0.07;
constexpr double kGoalPosition = 0.45;
constexpr double kPower = 0.0015, kGravity = 0.0025;

class MountainCarContinuous final : public Environment {
 public:
  static constexpr double kStepNanoseconds = 20;

  struct Arguments : Config {
    double goal_velocity = 0;
    void Fields(FieldVisitor& v) override {
      v.Field("goal_velocity", goal_velocity, "least velocity at the flag that ends the episode");
    }
  };

  explicit MountainCarContinuous(const Arguments& arguments)
      : goal_velocity_(arguments.goal_velocity), spec_(std::make_unique<EnvironmentSpec>()) {
    *spec_ = {.id = "MountainCarContinuous-v0",
              .observation = {{.name = "observation",
                               .shape = {2},
                               .low = {kMinPosition, -kMaxSpeed},
                               .high = {kMaxPosition, kMaxSpeed}}},
              .action = Box{.low = {-1}, .high = {1}},
              .time_limit = 999,
              .reward_threshold = 90,
              .appearance = {.width = 600, .height = 400, .frames_per_second = 30}};
  }

  const EnvironmentSpec& spec() const override { return *spec_; }

  void Reset(Rng& rng, StepRow out) override {
    state_ = {rng.Uniform(-0.6, -0.4), 0};
    single_ = false;
    Observe(out.observation);
    out.First();
  }

  void Step(ActionRow action, Rng&, StepRow out) override {
    const auto force = static_cast<float>(action.real());
    const bool goal = single_ ? Move<float>(force) : Move<double>(force);
    single_ = true;
    Observe(out.observation);
    out.Next((goal ? 100.0 : 0.0) - static_cast<double>(force) * force * 0.1, goal);
  }

  // position, velocity; taken over as float32, as after a step.
  void GetState(std::vector<double>& state) const override {
    state.assign(state_.begin(), state_.end());
  }
  void SetState(std::span<const double> state) override {
    WEFT_CHECK_EQ(state.size(), state_.size()) << "state of MountainCarContinuous-v0";
    std::copy(state.begin(), state.end(), state_.begin());
    single_ = true;
  }
  void Observe(ObservationRow out) override {
    auto* values = out.Leaf<float>();
    for (size_t i = 0; i < state_.size(); ++i) values[i] = static_cast<float>(state_[i]);
  }
  void Render(Canvas& canvas) const override {
    DrawMountain(state_[0], kMinPosition, kMaxPosition, kGoalPosition, canvas);
  }

  void Save(Writer& out) const override {
    out.Write(state_);
    out.Write(single_);
  }
  void Load(Reader& in) override {
    state_ = in.Read<std::array<double, 2>>();
    single_ = in.Read<bool>();
  }

 private:
  // One step with a state of type S; true when the goal is reached.
  template <class S>
  bool Move(float force) {
    auto position = static_cast<S>(state_[0]), velocity = static_cast<S>(state_[1]);
    const double slope = kGravity * std::cos(static_cast<double>(3 * position));
    if (force < -1 || force > 1) {
      velocity += static_cast<S>(std::clamp<double>(force, -1, 1) * kPower - slope);
    } else {
      velocity += static_cast<S>(force * static_cast<float>(kPower) - static_cast<float>(slope));
    }
    velocity = std::clamp(velocity, static_cast<S>(-kMaxSpeed), static_cast<S>(kMaxSpeed));
    position =
        std::clamp(position + velocity, static_cast<S>(kMinPosition), static_cast<S>(kMaxPosition));
    if (position == static_cast<S>(kMinPosition) && velocity < 0) velocity = 0;
    state_ = {static_cast<float>(position), static_cast<float>(velocity)};
    return position >= static_cast<S>(kGoalPosition) && velocity >= static_cast<S>(goal_velocity_);
  }

  std::array<double, 2> state_{};
  bool single_ = false;  // the state is float32
  double goal_velocity_;
  std::unique_ptr<EnvironmentSpec> spec_;
};

WEFT_REGISTER_ENVIRONMENT(MountainCarContinuous, "MountainCarContinuous-v0",
                          "swing a weak car up a hill at little cost: 2 numbers, 1 real action")

}  // namespace
}  // namespace weft
