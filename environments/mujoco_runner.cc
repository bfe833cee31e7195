// HalfCheetah-v5, Hopper-v5 and Walker2d-v5: planar robots that are paid for running to the right,
// less the cost of their controls, and (but for the cheetah) for staying healthy
// (gymnasium/envs/mujoco/{half_cheetah,hopper,walker2d}_v5.py, Gymnasium 1.4). One class; a task is
// a table of what differs.
#include <algorithm>
#include <limits>

#include "environments/mujoco_environment.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Runner {
  const char* id;
  const char* xml_file;
  int64_t frame_skip;
  double control_cost_weight;
  double reset_noise_scale;
  double reward_threshold;
  double velocity_clip = kInfinity;  // of observed velocities
  bool has_health = false;  // can fall; its velocities are drawn uniformly at reset, else normally
  bool has_state_range = false;
  double z_low = 0, z_high = 0, angle_low = 0, angle_high = 0;
};

constexpr Runner kHalfCheetah{.id = "HalfCheetah-v5",
                              .xml_file = "half_cheetah.xml",
                              .frame_skip = 5,
                              .control_cost_weight = 0.1,
                              .reset_noise_scale = 0.1,
                              .reward_threshold = 4800};
constexpr Runner kHopper{.id = "Hopper-v5",
                         .xml_file = "hopper.xml",
                         .frame_skip = 4,
                         .control_cost_weight = 1e-3,
                         .reset_noise_scale = 5e-3,
                         .reward_threshold = 3800,
                         .velocity_clip = 10,
                         .has_health = true,
                         .has_state_range = true,
                         .z_low = 0.7,
                         .z_high = kInfinity,
                         .angle_low = -0.2,
                         .angle_high = 0.2};
constexpr Runner kWalker2d{.id = "Walker2d-v5",
                           .xml_file = "walker2d_v5.xml",
                           .frame_skip = 4,
                           .control_cost_weight = 1e-3,
                           .reset_noise_scale = 5e-3,
                           .reward_threshold = 0,
                           .velocity_clip = 10,
                           .has_health = true,
                           .z_low = 0.8,
                           .z_high = 2,
                           .angle_low = -1,
                           .angle_high = 1};

struct RunnerArguments : MujocoArguments {
  explicit RunnerArguments(const Runner* table) : runner(table) {
    xml_file = table->xml_file;
    frame_skip = table->frame_skip;
    reset_noise_scale = table->reset_noise_scale;
    control_cost_weight = table->control_cost_weight;
    healthy_z_range = {table->z_low, table->z_high};
    healthy_angle_range = {table->angle_low, table->angle_high};
  }

  void Fields(FieldVisitor& v) override {
    MujocoArguments::Fields(v);
    v.Field("forward_reward_weight", forward_reward_weight, "reward per m/s to the right");
    v.Field("ctrl_cost_weight", control_cost_weight, "cost of the sum of squares of the action");
    v.Field("exclude_current_positions_from_observation", exclude_position,
            "leave the x coordinate out of the observation");
    if (!runner->has_health) return;
    const Range any = Range{}.OrInfinite();
    v.Field("healthy_reward", healthy_reward, "reward per step while healthy");
    v.Field("terminate_when_unhealthy", terminate_when_unhealthy,
            "end the episode when not healthy");
    v.Field("healthy_z_range", healthy_z_range, "open interval of the torso's height, m", any);
    v.Field("healthy_angle_range", healthy_angle_range, "open interval of the torso's angle, rad",
            any);
    if (!runner->has_state_range) return;
    v.Field("healthy_state_range", healthy_state_range,
            "open interval of every other coordinate and velocity", any);
  }

  void Check() const override {
    const auto check = [](const char* key, const std::vector<double>& range) {
      if (range.size() != 2) throw ConfigProblem(key, "must be [low, high]");
    };
    check("healthy_z_range", healthy_z_range);
    check("healthy_angle_range", healthy_angle_range);
    check("healthy_state_range", healthy_state_range);
  }

  const Runner* runner;
  double forward_reward_weight = 1, control_cost_weight, healthy_reward = 1;
  bool terminate_when_unhealthy = true, exclude_position = true;
  std::vector<double> healthy_z_range, healthy_angle_range, healthy_state_range = {-100, 100};
};

EnvironmentSpec RunnerSpec(const Runner& runner) {
  EnvironmentSpec spec{.id = runner.id,
                       .observation = {},
                       .action = {},
                       .time_limit = 1000,
                       .reward_threshold = runner.reward_threshold,
                       .info = {"x_position", "x_velocity", "reward_forward", "reward_ctrl"}};
  if (runner.has_health) {
    spec.info.push_back("z_distance_from_origin");
    spec.info.push_back("reward_survive");
  }
  return spec;
}

class RunnerEnvironment final : public MujocoEnvironment {
 public:
  using Arguments = RunnerArguments;

  explicit RunnerEnvironment(const Arguments& arguments)
      : MujocoEnvironment(
            arguments,
            arguments.runner->has_health ? VelocityNoise::kUniform : VelocityNoise::kNormal,
            RunnerSpec(*arguments.runner)),
        arguments_(arguments) {
    ObserveReals(simulation_.nq() + simulation_.nv() - (arguments.exclude_position ? 1 : 0));
  }

  void Step(ActionRow action, Rng&, StepRow out) override {
    const double x_before = simulation_.position()[0];
    Simulate(action);
    const double x_after = simulation_.position()[0];
    const double x_velocity = (x_after - x_before) / dt();
    const double forward = arguments_.forward_reward_weight * x_velocity;
    const double cost = ControlCost(action, arguments_.control_cost_weight);
    const bool has_health = arguments_.runner->has_health;
    const bool healthy = !has_health || Healthy();
    const double survive = has_health && healthy ? arguments_.healthy_reward : 0;
    info_[0] = x_after;
    info_[1] = x_velocity;
    info_[2] = forward;
    info_[3] = -cost;
    if (has_health) {
      info_[4] = simulation_.position()[1] - simulation_.initial_position()[1];
      info_[5] = survive;
    }
    Observe(out.observation);
    out.Next(forward + survive - cost, !healthy && arguments_.terminate_when_unhealthy);
  }

  void Observe(ObservationRow out) override {
    auto* values = out.Leaf<double>();
    const auto position = simulation_.position().subspan(arguments_.exclude_position ? 1 : 0);
    values = std::copy(position.begin(), position.end(), values);
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
    if (!inside(position[1], arguments_.healthy_z_range)) return false;
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

WEFT_REGISTER_ENVIRONMENT(RunnerEnvironment, kHalfCheetah.id,
                          "MuJoCo: a planar cheetah runs: 17 numbers, 6 real actions",
                          &kHalfCheetah)
WEFT_REGISTER_ENVIRONMENT(RunnerEnvironment, kHopper.id,
                          "MuJoCo: a planar leg hops without falling: 11 numbers, 3 real actions",
                          &kHopper)
WEFT_REGISTER_ENVIRONMENT(
    RunnerEnvironment, kWalker2d.id,
    "MuJoCo: two planar legs walk without falling: 17 numbers, 6 real actions", &kWalker2d)

}  // namespace
}  // namespace weft
