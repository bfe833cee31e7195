// InvertedPendulum-v5: a pole on a cart that is pushed with a real force
// (gymnasium/envs/mujoco/inverted_pendulum_v5.py, Gymnasium 1.4).
#include <algorithm>
#include <cmath>

#include "environments/mujoco_environment.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr double kMaxAngle = 0.2;  // rad

class InvertedPendulum final : public MujocoEnvironment {
 public:
  static constexpr double kStepNanoseconds = 10000;

  struct Arguments : MujocoArguments {
    Arguments() {
      xml_file = "inverted_pendulum.xml";
      frame_skip = 2;
      reset_noise_scale = 0.01;
    }
  };

  explicit InvertedPendulum(const Arguments& arguments)
      : MujocoEnvironment(arguments, VelocityNoise::kUniform,
                          {.id = "InvertedPendulum-v5",
                           .observation = {},
                           .action = {},
                           .time_limit = 1000,
                           .reward_threshold = 950,
                           .info = {"reward_survive"}}) {
    ObserveReals(simulation_.nq() + simulation_.nv());
  }

  void Step(ActionRow action, Rng&, StepRow out) override {
    Simulate(action);
    const auto finite = [](double value) { return std::isfinite(value); };
    const auto position = simulation_.position(), velocity = simulation_.velocity();
    const bool fell = std::abs(position[1]) > kMaxAngle ||
                      !std::all_of(position.begin(), position.end(), finite) ||
                      !std::all_of(velocity.begin(), velocity.end(), finite);
    info_[0] = fell ? 0 : 1;
    Observe(out.observation);
    out.Next(info_[0], fell);
  }

  void Observe(ObservationRow out) override {
    const auto position = simulation_.position(), velocity = simulation_.velocity();
    std::copy(velocity.begin(), velocity.end(),
              std::copy(position.begin(), position.end(), out.Leaf<double>()));
  }
};

WEFT_REGISTER_ENVIRONMENT(InvertedPendulum, "InvertedPendulum-v5",
                          "MuJoCo: balance a pole on a cart: 4 numbers, 1 real action")

}  // namespace
}  // namespace weft
