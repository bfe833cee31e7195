// Pusher-v5: an arm of seven joints pushes a cylinder to a goal on a table
// (gymnasium/envs/mujoco/pusher_v5.py, Gymnasium 1.4). Its version 4 has a model that MuJoCo 3
// simulates in another way, and Gymnasium refuses it, too: there is none here.
#include <cmath>

#include "environments/mujoco/mujoco_environment.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr double kVelocityNoise = 0.005;   // rad/s
constexpr double kMinGoalDistance = 0.17;  // m, of the object at the start; the goal is at 0, 0
// The last four coordinates are those of the object and the goal.
constexpr int64_t kArm = 7, kObjectAndGoal = 4;

constexpr MujocoTask kPusher{.id = "Pusher-v5",
                             .xml_file = "pusher_v5.xml",
                             .frame_skip = 5,
                             .time_limit = 100,
                             .camera_distance = 4};

class Pusher final : public MujocoEnvironment {
 public:
  struct Arguments : MujocoArguments {
    using MujocoArguments::MujocoArguments;
    void Fields(FieldVisitor& v) override {
      MujocoArguments::Fields(v);
      v.Field("reward_near_weight", near_weight,
              "cost of the arm's distance from the object, per m");
      v.Field("reward_dist_weight", distance_weight,
              "cost of the object's distance from the goal, per m");
      v.Field("reward_control_weight", control_weight, "cost of the sum of squares of the action");
    }
    double near_weight = 0.5, distance_weight = 1, control_weight = 0.1;
  };

  explicit Pusher(const Arguments& arguments)
      : MujocoEnvironment(arguments, kArm + kObjectAndGoal, kArm + kObjectAndGoal),
        arguments_(arguments),
        tip_(simulation_.Body("tips_arm")),
        object_(simulation_.Body("object")),
        goal_(simulation_.Body("goal")) {
    Declare(2 * kArm + 9, {"reward_dist", "reward_ctrl", "reward_near"}, -1);
  }

  void Step(ActionRow action, Rng&, StepRow out) override {
    Simulate(action);
    const auto object = simulation_.body_position(object_);
    info_[0] = -Distance(object, simulation_.body_position(goal_)) * arguments_.distance_weight;
    info_[1] = -ControlCost(action, arguments_.control_weight);
    info_[2] = -Distance(object, simulation_.body_position(tip_)) * arguments_.near_weight;
    Observe(out.observation);
    out.Next(info_[0] + info_[1] + info_[2], false);
  }

  void Observe(ObservationRow out) override {
    double* values = Append(simulation_.position().first(kArm), out.Leaf<double>());
    values = Append(simulation_.velocity().first(kArm), values);
    for (const int64_t body : {tip_, object_, goal_})
      values = Append(simulation_.body_position(body), values);
  }

 private:
  void DrawState(Rng& rng, std::span<double> position, std::span<double> velocity) override {
    const auto drawn = position.last(kObjectAndGoal);
    do {
      drawn[0] = rng.Uniform(-0.3, 0);
      drawn[1] = rng.Uniform(-0.2, 0.2);
    } while (std::hypot(drawn[0], drawn[1]) <= kMinGoalDistance);
    drawn[2] = drawn[3] = 0;
    for (double& value : velocity.first(velocity.size() - kObjectAndGoal))
      value = rng.Uniform(-kVelocityNoise, kVelocityNoise);
  }

  Arguments arguments_;
  int64_t tip_, object_, goal_;
};

WEFT_REGISTER_ENVIRONMENT(Pusher, kPusher.id,
                          "MuJoCo: an arm pushes an object to a goal: 23 numbers, 7 real actions",
                          kPusher)

}  // namespace
}  // namespace weft
