// CartPole-v1: a pole on a cart that is pushed left or right (Barto, Sutton and Anderson 1983),
// with the arithmetic of Gymnasium 1.4's classic_control/cartpole.py, operation by operation.
// Explicit Euler: positions move with the velocities of before the step.
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "environments/drawing/canvas.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr double kGravity = 9.8;
constexpr double kPoleMass = 0.1, kTotalMass = kPoleMass + 1.0;
constexpr double kHalfLength = 0.5;  // of the pole, m
constexpr double kPoleMassLength = kPoleMass * kHalfLength;
constexpr double kForce[] = {
    -10.0, 10.0};  // N, of each action; a table, as a branch on it would be mispredicted
constexpr double kTimeStep = 0.02;      // s
constexpr double kPositionLimit = 2.4;  // m
constexpr double kAngleLimit = 12 * 2 * std::numbers::pi / 360;

class CartPole final : public Environment {
 public:
  static constexpr double kStepNanoseconds = 20;

  struct Arguments : Config {
    bool sutton_barto_reward = false;
    void Fields(FieldVisitor& v) override {
      v.Field("sutton_barto_reward", sutton_barto_reward,
              "reward 0 while the pole stands and -1 when it falls, instead of 1 per step");
    }
  };

  explicit CartPole(const Arguments& arguments)
      : sutton_barto_reward_(arguments.sutton_barto_reward),
        spec_(std::make_unique<EnvironmentSpec>()) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const std::vector<double> high{2 * kPositionLimit, kInfinity, 2 * kAngleLimit, kInfinity};
    std::vector<double> low;
    for (const double bound : high) low.push_back(-bound);
    *spec_ = {.id = "CartPole-v1",
              .observation = {{.name = "observation", .shape = {4}, .low = low, .high = high}},
              .action = Discrete{.n = 2},
              .time_limit = 500,
              .reward_threshold = 475,
              .appearance = {.width = 600, .height = 400, .frames_per_second = 1 / kTimeStep}};
  }

  const EnvironmentSpec& spec() const override { return *spec_; }

  void Reset(Rng& rng, StepRow out) override {
    for (double& value : state_) value = rng.Uniform(-0.05, 0.05);
    Observe(out.observation);
    out.First();
  }

  void Step(ActionRow action, Rng&, StepRow out) override {
    auto [x, x_dot, theta, theta_dot] = state_;
    const double force = kForce[action.index()];
    const double sine = std::sin(theta), cosine = std::cos(theta);
    const double pull = (force + kPoleMassLength * (theta_dot * theta_dot) * sine) / kTotalMass;
    const double theta_acceleration =
        (kGravity * sine - cosine * pull) /
        (kHalfLength * (4.0 / 3.0 - kPoleMass * (cosine * cosine) / kTotalMass));
    const double x_acceleration = pull - kPoleMassLength * theta_acceleration * cosine / kTotalMass;
    x = x + kTimeStep * x_dot;
    x_dot = x_dot + kTimeStep * x_acceleration;
    theta = theta + kTimeStep * theta_dot;
    theta_dot = theta_dot + kTimeStep * theta_acceleration;
    state_ = {x, x_dot, theta, theta_dot};

    const bool fell =
        x < -kPositionLimit || x > kPositionLimit || theta < -kAngleLimit || theta > kAngleLimit;
    out.Next(sutton_barto_reward_ ? (fell ? -1 : 0) : 1, fell);
    Observe(out.observation);
  }

  // x, x_dot, theta, theta_dot: m, m/s, rad, rad/s.
  void GetState(std::vector<double>& state) const override {
    state.assign(state_.begin(), state_.end());
  }
  void SetState(std::span<const double> state) override {
    WEFT_CHECK_EQ(state.size(), state_.size()) << "state of CartPole-v1";
    std::copy(state.begin(), state.end(), state_.begin());
  }
  void Observe(ObservationRow out) override {
    auto* values = out.Leaf<float>();
    for (size_t i = 0; i < state_.size(); ++i) values[i] = static_cast<float>(state_[i]);
  }
  void Render(Canvas& canvas) const override {
    constexpr double kTrack = 0.008, kCartWidth = 0.4, kCartHeight = 0.24;         // m
    constexpr double kPoleWidth = 0.08, kPivotHeight = 0.06, kPivotRadius = 0.04;  // m
    const double x = state_[0], angle = state_[2];
    canvas.Open(-kPositionLimit, kPositionLimit, -0.8, 2.4, kWhite);
    canvas.Rectangle(-2 * kPositionLimit, 2 * kPositionLimit, -kTrack / 2, kTrack / 2, kBlack);
    canvas.Rectangle(x - kCartWidth / 2, x + kCartWidth / 2, -kCartHeight / 2, kCartHeight / 2,
                     kBlack);
    const Point pivot{x, kPivotHeight}, along{std::sin(angle), std::cos(angle)};
    const auto corner = [&](double up, double right) {
      return Point{pivot.x + up * along.x + right * along.y,
                   pivot.y + up * along.y - right * along.x};
    };
    const double half = kPoleWidth / 2, tip = 2 * kHalfLength - half;
    canvas.Polygon(
        {corner(-half, -half), corner(tip, -half), corner(tip, half), corner(-half, half)},
        {202, 152, 101});
    canvas.Circle(pivot, kPivotRadius, {129, 132, 203});
  }

 private:
  std::array<double, 4> state_{};
  bool sutton_barto_reward_;
  std::unique_ptr<EnvironmentSpec> spec_;
};

WEFT_REGISTER_ENVIRONMENT(CartPole, "CartPole-v1", "balance a pole on a cart: 4 numbers, 2 actions")

}  // namespace
}  // namespace weft
