// Pendulum-v1: swing a pendulum up and hold it with little torque, with the arithmetic of
// Gymnasium 1.4's classic_control/pendulum.py, operation by operation. The cost is that of the
// state before the step. NumPy multiplies a float32 action in float32, so an f32 action is treated
// so here.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "environments/classic_control/numpy_power.h"
#include "environments/drawing/canvas.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kMaxSpeed = 8, kMaxTorque = 2;
constexpr double kTimeStep = 0.05;  // s
// Mass and length of the pendulum are 1.

// Into [-pi, pi), as Python's % does: the remainder takes the sign of the divisor.
double Wrap(double angle) {
  double rest = std::fmod(angle + kPi, 2 * kPi);
  if (rest < 0) rest += 2 * kPi;
  return rest - kPi;
}

class Pendulum final : public Environment {
 public:
  static constexpr double kStepNanoseconds = 50;

  struct Arguments : Config {
    double g = 10;
    void Fields(FieldVisitor& v) override { v.Field("g", g, "gravity, m/s^2"); }
  };

  explicit Pendulum(const Arguments& arguments)
      : g_(arguments.g), spec_(std::make_unique<EnvironmentSpec>()) {
    *spec_ = {.id = "Pendulum-v1",
              .observation = {{.name = "observation",
                               .shape = {3},
                               .low = {-1, -1, -kMaxSpeed},
                               .high = {1, 1, kMaxSpeed}}},
              .action = Box{.low = {-kMaxTorque}, .high = {kMaxTorque}},
              .time_limit = 200,
              .appearance = {.width = 500, .height = 500, .frames_per_second = 1 / kTimeStep}};
  }

  const EnvironmentSpec& spec() const override { return *spec_; }

  void Reset(Rng& rng, StepRow out) override {
    const double angle = rng.Uniform(-kPi, kPi);
    state_ = {angle, rng.Uniform(-1, 1)};
    Observe(out.observation);
    out.First();
  }

  void Step(ActionRow action, Rng&, StepRow out) override {
    const auto [angle, speed] = state_;
    const double torque = std::clamp(action.real(), -kMaxTorque, kMaxTorque);
    double push = 3.0 * torque, effort = 0.001 * NumpySquare(torque);
    if (action.dtype() == DType::kFloat32) {
      const auto u = static_cast<float>(torque);
      push = 3.0f * u;
      effort = 0.001f * (u * u);
    }
    const double wrapped = Wrap(angle);
    const double cost = NumpySquare(wrapped) + 0.1 * NumpySquare(speed) + effort;
    const double free_speed = speed + (3 * g_ / 2 * std::sin(angle) + push) * kTimeStep;
    const double next_speed = std::clamp(free_speed, -kMaxSpeed, kMaxSpeed);
    state_ = {angle + next_speed * kTimeStep, next_speed};
    Observe(out.observation);
    out.Next(-cost, false);
  }

  // angle (never wrapped), speed: rad, rad/s.
  void GetState(std::vector<double>& state) const override {
    state.assign(state_.begin(), state_.end());
  }
  void SetState(std::span<const double> state) override {
    WEFT_CHECK_EQ(state.size(), state_.size()) << "state of Pendulum-v1";
    std::copy(state.begin(), state.end(), state_.begin());
  }
  void Observe(ObservationRow out) override {
    auto* values = out.Leaf<float>();
    values[0] = static_cast<float>(std::cos(state_[0]));
    values[1] = static_cast<float>(std::sin(state_[0]));
    values[2] = static_cast<float>(state_[1]);
  }
  void Render(Canvas& canvas) const override {
    constexpr double kReach = 2.2, kRodLength = 1, kRodWidth = 0.2, kAxleRadius = 0.05;  // m
    const double angle = state_[0];  // counterclockwise from upright
    canvas.Open(-kReach, kReach, -kReach, kReach, kWhite);
    canvas.Line({0, 0}, {-kRodLength * std::sin(angle), kRodLength * std::cos(angle)}, kRodWidth,
                {204, 77, 77});
    canvas.Circle({0, 0}, kAxleRadius, kBlack);
  }

 private:
  std::array<double, 2> state_{};
  double g_;
  std::unique_ptr<EnvironmentSpec> spec_;
};

WEFT_REGISTER_ENVIRONMENT(Pendulum, "Pendulum-v1",
                          "swing a pendulum up and hold it: 3 numbers, 1 real action")

}  // namespace
}  // namespace weft
