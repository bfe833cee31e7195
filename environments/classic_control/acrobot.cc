// Acrobot-v1: two links hang from a joint, torque acts between them, and the tip must rise above
// the line (Sutton 1996), with the arithmetic of Gymnasium 1.4's classic_control/acrobot.py ("book"
// equations of Sutton and Barto 2018), operation by operation: one Runge-Kutta step of 0.2 s. The
// reset state is rounded to float32.
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
constexpr double kTimeStep = 0.2;  // s
constexpr double kMaxSpeed1 = 4 * kPi, kMaxSpeed2 = 9 * kPi;
constexpr double kGravity = 9.8;
constexpr double kCenter = 0.5;  // of mass of either link, m from its joint
// Lengths, masses and moments of inertia of both links are 1.

using State =
    std::array<double, 4>;  // angle 1, angle 2 (relative to link 1), their speeds: rad, rad/s

State Derivative(const State& state, double torque) {
  const auto [angle1, angle2, speed1, speed2] = state;
  const double cosine2 = std::cos(angle2), sine2 = std::sin(angle2);
  const double d1 = kCenter * kCenter + (1 + kCenter * kCenter + 2 * kCenter * cosine2) + 1 + 1;
  const double d2 = (kCenter * kCenter + kCenter * cosine2) + 1;
  const double phi2 = kCenter * kGravity * std::cos(angle1 + angle2 - kPi / 2);
  const double phi1 = -kCenter * NumpySquare(speed2) * sine2 -
                      2 * kCenter * speed2 * speed1 * sine2 +
                      (kCenter + 1) * kGravity * std::cos(angle1 - kPi / 2) + phi2;
  const double acceleration2 =
      (torque + d2 / d1 * phi1 - kCenter * NumpySquare(speed1) * sine2 - phi2) /
      (kCenter * kCenter + 1 - NumpySquare(d2) / d1);
  const double acceleration1 = -(d2 * acceleration2 + phi1) / d1;
  return {speed1, speed2, acceleration1, acceleration2};
}

State Along(const State& from, double step, const State& slope) {
  State to;
  for (size_t i = 0; i < to.size(); ++i) to[i] = from[i] + step * slope[i];
  return to;
}

State RungeKutta(const State& y, double torque) {
  const State k1 = Derivative(y, torque);
  const State k2 = Derivative(Along(y, kTimeStep / 2, k1), torque);
  const State k3 = Derivative(Along(y, kTimeStep / 2, k2), torque);
  const State k4 = Derivative(Along(y, kTimeStep, k3), torque);
  State sum;
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i];
  return Along(y, kTimeStep / 6, sum);
}

double Wrap(double angle) {
  while (angle > kPi) angle = angle - 2 * kPi;
  while (angle < -kPi) angle = angle + 2 * kPi;
  return angle;
}

class Acrobot final : public Environment {
 public:
  static constexpr double kStepNanoseconds = 300;
  using Arguments = NoArguments;

  explicit Acrobot(const Arguments&) : spec_(std::make_unique<EnvironmentSpec>()) {
    *spec_ = {.id = "Acrobot-v1",
              .observation = {{.name = "observation",
                               .shape = {6},
                               .low = {-1, -1, -1, -1, -kMaxSpeed1, -kMaxSpeed2},
                               .high = {1, 1, 1, 1, kMaxSpeed1, kMaxSpeed2}}},
              .action = Discrete{.n = 3},
              .time_limit = 500,
              .reward_threshold = -100,
              .appearance = {.width = 500, .height = 500, .frames_per_second = 15}};
  }

  const EnvironmentSpec& spec() const override { return *spec_; }

  void Reset(Rng& rng, StepRow out) override {
    for (double& value : state_) value = static_cast<float>(rng.Uniform(-0.1, 0.1));
    Observe(out.observation);
    out.First();
  }

  void Step(ActionRow action, Rng&, StepRow out) override {
    const auto torque = static_cast<double>(action.index() - 1);
    const State next = RungeKutta(state_, torque);
    state_ = {Wrap(next[0]), Wrap(next[1]), std::clamp(next[2], -kMaxSpeed1, kMaxSpeed1),
              std::clamp(next[3], -kMaxSpeed2, kMaxSpeed2)};
    const bool up = -std::cos(state_[0]) - std::cos(state_[1] + state_[0]) > 1;
    Observe(out.observation);
    out.Next(up ? 0 : -1, up);
  }

  void GetState(std::vector<double>& state) const override {
    state.assign(state_.begin(), state_.end());
  }
  void SetState(std::span<const double> state) override {
    WEFT_CHECK_EQ(state.size(), state_.size()) << "state of Acrobot-v1";
    std::copy(state.begin(), state.end(), state_.begin());
  }
  void Observe(ObservationRow out) override {
    auto* values = out.Leaf<float>();
    values[0] = static_cast<float>(std::cos(state_[0]));
    values[1] = static_cast<float>(std::sin(state_[0]));
    values[2] = static_cast<float>(std::cos(state_[1]));
    values[3] = static_cast<float>(std::sin(state_[1]));
    values[4] = static_cast<float>(state_[2]);
    values[5] = static_cast<float>(state_[3]);
  }
  void Render(Canvas& canvas) const override {
    constexpr double kReach = 2.2, kLinkWidth = 0.2, kJointRadius = 0.1, kGoal = 1;  // m
    constexpr Colour kLink{0, 204, 204}, kJoint{204, 204, 0};
    const double angle = state_[0], tip_angle = state_[0] + state_[1];
    const Point elbow{std::sin(angle), -std::cos(angle)};
    const Point tip{elbow.x + std::sin(tip_angle), elbow.y - std::cos(tip_angle)};
    canvas.Open(-kReach, kReach, -kReach, kReach, kWhite);
    canvas.Line({-2 * kReach, kGoal}, {2 * kReach, kGoal}, 0.01, kBlack);
    canvas.Line({0, 0}, elbow, kLinkWidth, kLink);
    canvas.Line(elbow, tip, kLinkWidth, kLink);
    canvas.Circle({0, 0}, kJointRadius, kJoint);
    canvas.Circle(elbow, kJointRadius, kJoint);
  }

 private:
  State state_{};
  std::unique_ptr<EnvironmentSpec> spec_;
};

WEFT_REGISTER_ENVIRONMENT(Acrobot, "Acrobot-v1",
                          "swing a two-link arm above a line: 6 numbers, 3 actions")

}  // namespace
}  // namespace weft
