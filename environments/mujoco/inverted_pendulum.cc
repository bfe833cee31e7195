// InvertedPendulum and InvertedDoublePendulum: one or two poles on a cart that is pushed with a
// real force (gymnasium/envs/mujoco/inverted_{,double_}pendulum_v{4,5}.py, Gymnasium 1.4). In
// version 4 the step in which the poles fall earns the reward of staying up, too.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "environments/mujoco/mujoco_environment.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr double kMaxAngle = 0.2;        // rad, of the single pole
constexpr double kMinTipHeight = 1;      // m, of the double pole
constexpr double kUprightTipHeight = 2;  // m, towards which the double pole is rewarded
constexpr double kClip = 10;             // of the double pole's velocities, rad/s, and force

constexpr MujocoTask Single(const char* id, int version) {
  return {.id = id,
          .xml_file = "inverted_pendulum.xml",
          .frame_skip = 2,
          .reset_noise_scale = 0.01,
          .reward_threshold = 950,
          .version = version,
          .camera_distance = 2.04};
}

class InvertedPendulum final : public MujocoEnvironment {
 public:
  using Arguments = MujocoArguments;
  static constexpr double kStepNanoseconds = 10000;

  explicit InvertedPendulum(const Arguments& arguments) : MujocoEnvironment(arguments, 2, 1) {
    Declare(simulation_.nq() + simulation_.nv(), {"reward_survive"}, 0);
  }

  void Step(ActionRow action, Rng&, StepRow out) override {
    Simulate(action);
    const auto finite = [](double value) { return std::isfinite(value); };
    const auto position = simulation_.position(), velocity = simulation_.velocity();
    const bool fell = std::abs(position[1]) > kMaxAngle ||
                      !std::all_of(position.begin(), position.end(), finite) ||
                      !std::all_of(velocity.begin(), velocity.end(), finite);
    info_[0] = fell && version() == 5 ? 0 : 1;
    Observe(out.observation);
    out.Next(info_[0], fell);
  }

  void Observe(ObservationRow out) override {
    Append(simulation_.velocity(), Append(simulation_.position(), out.Leaf<double>()));
  }
};

constexpr MujocoTask Double(const char* id, int version) {
  return {.id = id,
          .xml_file = "inverted_double_pendulum.xml",
          .frame_skip = 5,
          .reset_noise_scale = 0.1,
          .normal_velocity = true,
          .reward_threshold = 9100,
          .version = version,
          .camera_distance = 4.1225};
}

class InvertedDoublePendulum final : public MujocoEnvironment {
 public:
  struct Arguments : MujocoArguments {
    using MujocoArguments::MujocoArguments;
    void Fields(FieldVisitor& v) override {
      MujocoArguments::Fields(v);
      v.Field("healthy_reward", healthy_reward, "reward per step while the tip is up");
    }
    double healthy_reward = 10;
  };

  explicit InvertedDoublePendulum(const Arguments& arguments)
      : MujocoEnvironment(arguments, 3, 3), healthy_reward_(arguments.healthy_reward) {
    if (simulation_.sites() == 0) {
      throw Error(ErrorCode::kConfig,
                  arguments.xml_file + " has no site: the first one marks the tip of the poles");
    }
    const int64_t nq = simulation_.nq(), nv = simulation_.nv();
    Declare(1 + 2 * (nq - 1) + nv + (version() == 4 ? nv : 1),
            {"reward_survive", "distance_penalty", "velocity_penalty"}, -1);
  }

  void Step(ActionRow action, Rng&, StepRow out) override {
    Simulate(action);
    const auto tip = simulation_.site_position(0), velocity = simulation_.velocity();
    const double below = tip[2] - kUprightTipHeight;
    const bool fell = tip[2] <= kMinTipHeight;
    info_[0] = fell && version() == 5 ? 0 : healthy_reward_;
    info_[1] = -(0.01 * (tip[0] * tip[0]) + below * below);
    info_[2] = -(1e-3 * (velocity[1] * velocity[1]) + 5e-3 * (velocity[2] * velocity[2]));
    Observe(out.observation);
    out.Next(info_[0] + info_[1] + info_[2], fell);
  }

  void Observe(ObservationRow out) override {
    const auto position = simulation_.position(), force = simulation_.constraint_force();
    auto* values = out.Leaf<double>();
    const auto append = [&](std::span<const double> from, auto function) {
      values = std::transform(from.begin(), from.end(), values, function);
    };
    const auto clip = [](double value) { return std::clamp(value, -kClip, kClip); };
    *values++ = position[0];
    append(position.subspan(1), [](double angle) { return std::sin(angle); });
    append(position.subspan(1), [](double angle) { return std::cos(angle); });
    append(simulation_.velocity(), clip);
    append(version() == 4 ? force : force.first(1), clip);
  }

 private:
  double healthy_reward_;
};

WEFT_REGISTER_ENVIRONMENT(InvertedPendulum, "InvertedPendulum-v5",
                          "MuJoCo: balance a pole on a cart: 4 numbers, 1 real action",
                          Single("InvertedPendulum-v5", 5))
WEFT_REGISTER_ENVIRONMENT(InvertedPendulum, "InvertedPendulum-v4",
                          "InvertedPendulum-v5 whose last step earns 1, too",
                          Single("InvertedPendulum-v4", 4))
WEFT_REGISTER_ENVIRONMENT(InvertedDoublePendulum, "InvertedDoublePendulum-v5",
                          "MuJoCo: balance two poles on a cart: 9 numbers, 1 real action",
                          Double("InvertedDoublePendulum-v5", 5))
WEFT_REGISTER_ENVIRONMENT(
    InvertedDoublePendulum, "InvertedDoublePendulum-v4",
    "InvertedDoublePendulum-v5 that observes all constraint forces: 11 numbers",
    Double("InvertedDoublePendulum-v4", 4))

}  // namespace
}  // namespace weft
