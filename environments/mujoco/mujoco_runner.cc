// HalfCheetah, Hopper, Walker2d and Swimmer: planar robots that are paid for moving to the right,
// less the cost of their controls, and (Hopper and Walker2d) for staying healthy
// (gymnasium/envs/mujoco/{half_cheetah,hopper,walker2d,swimmer}_v{4,5}.py, Gymnasium 1.4). One
// class; a task is a table of what differs.
#include <algorithm>
#include <cmath>
#include <limits>

#include "environments/mujoco/mujoco_environment.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Runner {
  MujocoTask task;
  double control_cost_weight;
  const char* forward_info = "reward_forward";
  // Swims in the x-y plane, else walks in the x-z plane: which coordinates are left out of the
  // observation and what info tells.
  bool swims = false;
  double velocity_clip = kInfinity;  // of observed velocities
  bool has_health = false;           // can fall
  bool has_state_range = false;
  double z_low = 0, z_high = 0, angle_low = 0, angle_high = 0;

  constexpr Runner Version4(const char* id) const {
    Runner runner = *this;
    runner.task.id = id;
    runner.task.version = 4;
    return runner;
  }
};

constexpr Runner kHalfCheetah{.task = {.id = "HalfCheetah-v5",
                                       .xml_file = "half_cheetah.xml",
                                       .frame_skip = 5,
                                       .reset_noise_scale = 0.1,
                                       .normal_velocity = true,
                                       .reward_threshold = 4800},
                              .control_cost_weight = 0.1};
constexpr Runner kHopper{.task = {.id = "Hopper-v5",
                                  .xml_file = "hopper.xml",
                                  .frame_skip = 4,
                                  .reset_noise_scale = 5e-3,
                                  .reward_threshold = 3800},
                         .control_cost_weight = 1e-3,
                         .velocity_clip = 10,
                         .has_health = true,
                         .has_state_range = true,
                         .z_low = 0.7,
                         .z_high = kInfinity,
                         .angle_low = -0.2,
                         .angle_high = 0.2};
constexpr Runner kWalker2d{.task = {.id = "Walker2d-v5",
                                    .xml_file = "walker2d_v5.xml",
                                    .frame_skip = 4,
                                    .reset_noise_scale = 5e-3},
                           .control_cost_weight = 1e-3,
                           .velocity_clip = 10,
                           .has_health = true,
                           .z_low = 0.8,
                           .z_high = 2,
                           .angle_low = -1,
                           .angle_high = 1};
constexpr Runner kSwimmer{.task = {.id = "Swimmer-v5",
                                   .xml_file = "swimmer.xml",
                                   .frame_skip = 4,
                                   .reset_noise_scale = 0.1,
                                   .reward_threshold = 360},
                          .control_cost_weight = 1e-4,
                          .swims = true};

constexpr Runner kHalfCheetah4 = [] {
  Runner runner = kHalfCheetah.Version4("HalfCheetah-v4");
  runner.forward_info = "reward_run";
  return runner;
}();
constexpr Runner kHopper4 = kHopper.Version4("Hopper-v4");
constexpr Runner kWalker2d4 = [] {
  Runner runner = kWalker2d.Version4("Walker2d-v4");
  runner.task.xml_file = "walker2d.xml";  // less friction under one foot
  return runner;
}();
constexpr Runner kSwimmer4 = [] {
  Runner runner = kSwimmer.Version4("Swimmer-v4");
  runner.forward_info = "reward_fwd";
  return runner;
}();

struct RunnerArguments : MujocoArguments {
  explicit RunnerArguments(const Runner* table)
      : MujocoArguments(table->task),
        runner(table),
        control_cost_weight(table->control_cost_weight),
        health{.z_range = {table->z_low, table->z_high}},
        healthy_angle_range{table->angle_low, table->angle_high} {}

  void Fields(FieldVisitor& v) override {
    MujocoArguments::Fields(v);
    v.Field("forward_reward_weight", forward_reward_weight, "reward per m/s to the right");
    v.Field("ctrl_cost_weight", control_cost_weight, "cost of the sum of squares of the action");
    v.Field("exclude_current_positions_from_observation", exclude_position,
            runner->swims ? "leave the x and y coordinates out of the observation"
                          : "leave the x coordinate out of the observation");
    if (!runner->has_health) return;
    health.Fields(v);
    RangeField(v, "healthy_angle_range", healthy_angle_range,
               "open interval of the torso's angle, rad");
    if (!runner->has_state_range) return;
    RangeField(v, "healthy_state_range", healthy_state_range,
               "open interval of every other coordinate and velocity");
  }

  void Check() const override {
    CheckRange("healthy_z_range", health.z_range);
    CheckRange("healthy_angle_range", healthy_angle_range);
    CheckRange("healthy_state_range", healthy_state_range);
  }

  int64_t hidden() const { return !exclude_position ? 0 : runner->swims ? 2 : 1; }

  const Runner* runner;
  double forward_reward_weight = 1, control_cost_weight;
  HealthArguments health;
  bool exclude_position = true;
  std::vector<double> healthy_angle_range, healthy_state_range = {-100, 100};
};

class RunnerEnvironment final : public MujocoEnvironment {
 public:
  using Arguments = RunnerArguments;

  explicit RunnerEnvironment(const Arguments& arguments)
      : MujocoEnvironment(arguments, 3, 1), arguments_(arguments) {
    const Runner& runner = *arguments.runner;
    std::vector<std::string> info = {"x_position", "x_velocity", runner.forward_info,
                                     "reward_ctrl"};
    if (runner.swims) {
      info.insert(info.end(), {"y_position", "y_velocity", "distance_from_origin"});
    } else if (runner.has_health) {
      info.insert(info.end(), {"z_distance_from_origin", "reward_survive"});
    }
    Declare(simulation_.nq() + simulation_.nv() - arguments.hidden(), std::move(info),
            arguments.hidden());
  }

  void Step(ActionRow action, Rng&, StepRow out) override {
    const auto position = simulation_.position();
    const double x_before = position[0], y_before = position[1];
    Simulate(action);
    const Runner& runner = *arguments_.runner;
    const double x_velocity = (position[0] - x_before) / dt();
    const double forward = arguments_.forward_reward_weight * x_velocity;
    const double cost = ControlCost(action, arguments_.control_cost_weight);
    const bool healthy = !runner.has_health || Healthy();
    const double survive = runner.has_health ? arguments_.health.Reward(healthy, version()) : 0;
    info_[0] = position[0];
    info_[1] = x_velocity;
    info_[2] = forward;
    info_[3] = -cost;
    if (runner.swims) {
      info_[4] = position[1];
      info_[5] = (position[1] - y_before) / dt();
      info_[6] = std::sqrt(SumOfSquares(position.first(2)));
    } else if (runner.has_health) {
      info_[4] = position[1] - simulation_.initial_position()[1];
      info_[5] = survive;
    }
    Observe(out.observation);
    out.Next(forward + survive - cost, !healthy && arguments_.health.terminate);
  }

  void Observe(ObservationRow out) override {
    const auto hidden = static_cast<size_t>(arguments_.hidden());
    double* values = Append(simulation_.position().subspan(hidden), out.Leaf<double>());
    const double clip = arguments_.runner->velocity_clip;
    for (const double velocity : simulation_.velocity())
      *values++ = std::clamp(velocity, -clip, clip);
  }

 private:
  bool Healthy() const {
    const auto inside = [](double value, const std::vector<double>& range) {
      return range[0] < value && value < range[1];
    };
    const auto position = simulation_.position();
    if (!inside(position[1], arguments_.health.z_range)) return false;
    if (!inside(position[2], arguments_.healthy_angle_range)) return false;
    if (!arguments_.runner->has_state_range) return true;
    const auto in_state_range = [&](double value) {
      return inside(value, arguments_.healthy_state_range);
    };
    const auto others = position.subspan(2);
    const auto velocity = simulation_.velocity();
    return std::all_of(others.begin(), others.end(), in_state_range) &&
           std::all_of(velocity.begin(), velocity.end(), in_state_range);
  }

  Arguments arguments_;
};

WEFT_REGISTER_ENVIRONMENT(RunnerEnvironment, kHalfCheetah.task.id,
                          "MuJoCo: a planar cheetah runs: 17 numbers, 6 real actions",
                          &kHalfCheetah)
WEFT_REGISTER_ENVIRONMENT(RunnerEnvironment, kHalfCheetah4.task.id,
                          "HalfCheetah-v5 under its older name", &kHalfCheetah4)
WEFT_REGISTER_ENVIRONMENT(RunnerEnvironment, kHopper.task.id,
                          "MuJoCo: a planar leg hops without falling: 11 numbers, 3 real actions",
                          &kHopper)
WEFT_REGISTER_ENVIRONMENT(RunnerEnvironment, kHopper4.task.id,
                          "Hopper-v5 whose last step earns the healthy reward, too", &kHopper4)
WEFT_REGISTER_ENVIRONMENT(
    RunnerEnvironment, kWalker2d.task.id,
    "MuJoCo: two planar legs walk without falling: 17 numbers, 6 real actions", &kWalker2d)
WEFT_REGISTER_ENVIRONMENT(RunnerEnvironment, kWalker2d4.task.id,
                          "Walker2d-v5 with unequal feet, last step as in Hopper-v4", &kWalker2d4)
WEFT_REGISTER_ENVIRONMENT(RunnerEnvironment, kSwimmer.task.id,
                          "MuJoCo: three links swim in a viscous fluid: 8 numbers, 2 real actions",
                          &kSwimmer)
WEFT_REGISTER_ENVIRONMENT(RunnerEnvironment, kSwimmer4.task.id, "Swimmer-v5 under its older name",
                          &kSwimmer4)

}  // namespace
}  // namespace weft
