// Reacher: an arm of two links brings its fingertip to a target in the plane
// (gymnasium/envs/mujoco/reacher_v{4,5}.py, Gymnasium 1.4). Version 4 pays for the distance before
// the step and observes its vertical part, which is always 0.
#include <array>
#include <cmath>

#include "environments/mujoco/mujoco_environment.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr double kAngleNoise = 0.1;       // rad
constexpr double kVelocityNoise = 0.005;  // rad/s
constexpr double kTargetRadius = 0.2;     // m
// The last two coordinates are those of the target; the first two the angles of the arm.
constexpr int64_t kArm = 2, kTarget = 2;

constexpr MujocoTask Task(const char* id, int version) {
  return {.id = id,
          .xml_file = "reacher.xml",
          .frame_skip = 2,
          .reward_threshold = -3.75,
          .time_limit = 50,
          .version = version};
}

class Reacher final : public MujocoEnvironment {
 public:
  static constexpr double kStepNanoseconds = 15000;

  struct Arguments : MujocoArguments {
    using MujocoArguments::MujocoArguments;
    void Fields(FieldVisitor& v) override {
      MujocoArguments::Fields(v);
      v.Field("reward_dist_weight", distance_weight, "cost of the fingertip's distance, per m");
      v.Field("reward_control_weight", control_weight, "cost of the sum of squares of the action");
    }
    double distance_weight = 1, control_weight = 1;
  };

  explicit Reacher(const Arguments& arguments)
      : MujocoEnvironment(arguments, kArm + kTarget, kArm + kTarget),
        arguments_(arguments),
        fingertip_(simulation_.Body("fingertip")),
        target_(simulation_.Body("target")) {
    Declare(2 * kArm + simulation_.nq() - kArm + kArm + (version() == 4 ? 3 : 2),
            {"reward_dist", "reward_ctrl"}, -1);
  }

  void Step(ActionRow action, Rng&, StepRow out) override {
    const double distance_before = std::sqrt(SumOfSquares(offset_));
    Simulate(action);
    Settle();
    const double distance = version() == 4 ? distance_before : std::sqrt(SumOfSquares(offset_));
    info_[0] = -distance * arguments_.distance_weight;
    info_[1] = -ControlCost(action, arguments_.control_weight);
    Observe(out.observation);
    out.Next(info_[0] + info_[1], false);
  }

  void Observe(ObservationRow out) override {
    const auto position = simulation_.position();
    auto* values = out.Leaf<double>();
    for (const double angle : position.first(kArm)) *values++ = std::cos(angle);
    for (const double angle : position.first(kArm)) *values++ = std::sin(angle);
    values = Append(position.subspan(kArm), values);
    values = Append(simulation_.velocity().first(kArm), values);
    Append(std::span(offset_).first(version() == 4 ? 3 : 2), values);
  }

  // The offset belongs to no state: it is that of the last stage of the integrator.
  void Save(Writer& out) const override {
    MujocoEnvironment::Save(out);
    out.Write(offset_);
  }
  void Load(Reader& in) override {
    MujocoEnvironment::Load(in);
    offset_ = in.Read<std::array<double, 3>>();
  }

 private:
  void DrawState(Rng& rng, std::span<double> position, std::span<double> velocity) override {
    for (double& value : position) value += rng.Uniform(-kAngleNoise, kAngleNoise);
    const auto target = position.last(kTarget);
    do {
      for (double& value : target) value = rng.Uniform(-kTargetRadius, kTargetRadius);
    } while (std::sqrt(SumOfSquares(target)) >= kTargetRadius);
    for (double& value : velocity.first(velocity.size() - kTarget))
      value = rng.Uniform(-kVelocityNoise, kVelocityNoise);
  }

  void Settle() override {
    const auto fingertip = simulation_.body_position(fingertip_);
    const auto target = simulation_.body_position(target_);
    for (size_t i = 0; i < 3; ++i) offset_[i] = fingertip[i] - target[i];
  }

  Arguments arguments_;
  int64_t fingertip_, target_;
  std::array<double, 3> offset_{};  // from the target to the fingertip, m
};

WEFT_REGISTER_ENVIRONMENT(
    Reacher, "Reacher-v5",
    "MuJoCo: an arm of two links reaches a target: 10 numbers, 2 real actions",
    Task("Reacher-v5", 5))
WEFT_REGISTER_ENVIRONMENT(Reacher, "Reacher-v4",
                          "Reacher-v5 rewarded for the distance before the step: 11 numbers",
                          Task("Reacher-v4", 4))

}  // namespace
}  // namespace weft
