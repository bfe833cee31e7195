// MountainCar-v0: a car in a valley must swing up to the flag on the right hill (Moore 1990), with
// the arithmetic of Gymnasium 1.4's classic_control/mountain_car.py, operation by operation.
#include <algorithm>
#include <array>
#include <cmath>

#include "environments/classic_control/mountain.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr double kMinPosition = -1.2, kMaxPosition = 0.6;
constexpr double kMaxSpeed = 0.07;
constexpr double kGoalPosition = 0.5;
constexpr double kForce = 0.001, kGravity = 0.0025;

class MountainCar final : public Environment {
 public:
  static constexpr double kStepNanoseconds = 20;

  struct Arguments : Config {
    double goal_velocity = 0;
    void Fields(FieldVisitor& v) override {
      v.Field("goal_velocity", goal_velocity, "least velocity at the flag that ends the episode");
    }
  };

  explicit MountainCar(const Arguments& arguments)
      : goal_velocity_(arguments.goal_velocity), spec_(std::make_unique<EnvironmentSpec>()) {
    *spec_ = {.id = "MountainCar-v0",
              .observation = {{.name = "observation",
                               .shape = {2},
                               .low = {kMinPosition, -kMaxSpeed},
                               .high = {kMaxPosition, kMaxSpeed}}},
              .action = Discrete{.n = 3},
              .time_limit = 200,
              .reward_threshold = -110,
              .appearance = {.width = 600, .height = 400, .frames_per_second = 30}};
  }

  const EnvironmentSpec& spec() const override { return *spec_; }

  void Reset(Rng& rng, StepRow out) override {
    state_ = {rng.Uniform(-0.6, -0.4), 0};
    Observe(out.observation);
    out.First();
  }

  void Step(ActionRow action, Rng&, StepRow out) override {
    auto [position, velocity] = state_;
    velocity +=
        static_cast<double>(action.index() - 1) * kForce + std::cos(3 * position) * -kGravity;
    velocity = std::clamp(velocity, -kMaxSpeed, kMaxSpeed);
    position = std::clamp(position + velocity, kMinPosition, kMaxPosition);
    if (position == kMinPosition && velocity < 0) velocity = 0;
    state_ = {position, velocity};
    Observe(out.observation);
    out.Next(-1, position >= kGoalPosition && velocity >= goal_velocity_);
  }

  // position, velocity.
  void GetState(std::vector<double>& state) const override {
    state.assign(state_.begin(), state_.end());
  }
  void SetState(std::span<const double> state) override {
    WEFT_CHECK_EQ(state.size(), state_.size()) << "state of MountainCar-v0";
    std::copy(state.begin(), state.end(), state_.begin());
  }
  void Observe(ObservationRow out) override {
    auto* values = out.Leaf<float>();
    for (size_t i = 0; i < state_.size(); ++i) values[i] = static_cast<float>(state_[i]);
  }
  void Render(Canvas& canvas) const override {
    DrawMountain(state_[0], kMinPosition, kMaxPosition, kGoalPosition, canvas);
  }

 private:
  std::array<double, 2> state_{};
  double goal_velocity_;
  std::unique_ptr<EnvironmentSpec> spec_;
};

WEFT_REGISTER_ENVIRONMENT(MountainCar, "MountainCar-v0",
                          "swing a weak car up a hill: 2 numbers, 3 actions")

}  // namespace
}  // namespace weft
