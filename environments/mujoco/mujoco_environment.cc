#include "environments/mujoco/mujoco_environment.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "environments/drawing/canvas.h"
#include "environments/mujoco/control_cost.h"
#include "environments/mujoco/mujoco_elements.h"
#include "environments/mujoco/mujoco_renderer.h"
#include "environments/mujoco/numpy_sum.h"

namespace weft {
MujocoArguments::MujocoArguments(const MujocoTask& table)
    : task(table),
      xml_file(table.xml_file),
      frame_skip(table.frame_skip),
      reset_noise_scale(table.reset_noise_scale) {}

void MujocoArguments::Fields(FieldVisitor& v) {
  v.Field("xml_file", xml_file,
          "model: a standard file, or a path that begins with '/', '.' or '~'");
  v.Field("frame_skip", frame_skip, "simulation steps per action", Range::Between(1, 10000));
  if (task.reset_noise_scale == 0) return;
  v.Field("reset_noise_scale", reset_noise_scale, "spread of the first state", Range::AtLeast(0));
}

void RangeField(FieldVisitor& v, const char* key, std::vector<double>& range, const char* help) {
  v.Field(key, range, help, Range{}.OrInfinite());
}

void CheckRange(const char* key, const std::vector<double>& range) {
  if (range.size() != 2) throw ConfigProblem(key, "must be [low, high]");
}

void HealthArguments::Fields(FieldVisitor& v) {
  v.Field("healthy_reward", reward, "reward per step while healthy");
  v.Field("terminate_when_unhealthy", terminate, "end the episode when not healthy");
  RangeField(v, "healthy_z_range", z_range, "interval of the torso's height, m");
}

MujocoEnvironment::MujocoEnvironment(const MujocoArguments& arguments, int64_t least_nq,
                                     int64_t least_nv)
    : simulation_(arguments.xml_file),
      frame_skip_(arguments.frame_skip),
      reset_noise_scale_(arguments.reset_noise_scale),
      normal_velocity_(arguments.task.normal_velocity),
      version_(arguments.task.version),
      camera_distance_(arguments.task.camera_distance),
      control_(static_cast<size_t>(simulation_.nu())),
      state_(static_cast<size_t>(simulation_.nq() + simulation_.nv())),
      spec_(std::make_unique<EnvironmentSpec>()) {
  const MujocoTask& task = arguments.task;
  if (simulation_.nq() < least_nq || simulation_.nv() < least_nv) {
    throw Error(ErrorCode::kConfig,
                arguments.xml_file + " has " + std::to_string(simulation_.nq()) +
                    " coordinates and " + std::to_string(simulation_.nv()) +
                    " velocities: " + task.id + " needs " + std::to_string(least_nq) + " and " +
                    std::to_string(least_nv) + " or more");
  }
  Box box;
  const auto range = simulation_.control_range();
  for (size_t i = 0; i < range.size(); i += 2) {
    box.low.push_back(range[i]);
    box.high.push_back(range[i + 1]);
  }
  *spec_ = {.id = task.id,
            .observation = {},
            .action = std::move(box),
            .time_limit = task.time_limit,
            .reward_threshold = task.reward_threshold,
            .appearance = {.width = 480, .height = 480, .frames_per_second = 1 / dt()}};
}

void MujocoEnvironment::Declare(int64_t size, std::vector<std::string> info, int64_t hidden) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  spec_->observation = {{.name = "observation",
                         .shape = {size},
                         .dtype = DType::kFloat64,
                         .low = {-kInfinity},
                         .high = {kInfinity}}};
  if (hidden >= 0) {
    const auto labels = StateLabels(simulation_.model());
    spec_->observation[0].elements.assign(labels.begin() + hidden, labels.end());
  }
  info_.assign(info.size(), 0);
  spec_->info = std::move(info);
}

void MujocoEnvironment::DrawState(Rng& rng, std::span<double> position,
                                  std::span<double> velocity) {
  const auto uniform = [&] { return rng.Uniform(-reset_noise_scale_, reset_noise_scale_); };
  for (double& value : position) value += uniform();
  for (double& value : velocity) {
    value += normal_velocity_ ? reset_noise_scale_ * rng.Normal() : uniform();
  }
}

void MujocoEnvironment::Reset(Rng& rng, StepRow out) {
  const auto initial = simulation_.initial_position();
  std::copy(initial.begin(), initial.end(), state_.begin());
  const auto position = std::span(state_).first(initial.size());
  const auto velocity = std::span(state_).subspan(initial.size());
  std::ranges::fill(velocity, 0.0);
  DrawState(rng, position, velocity);
  SetState(state_);
  Observe(out.observation);
  out.First();
}

void MujocoEnvironment::GetState(std::vector<double>& state) const {
  const auto position = simulation_.position(), velocity = simulation_.velocity();
  state.assign(position.begin(), position.end());
  state.insert(state.end(), velocity.begin(), velocity.end());
}

void MujocoEnvironment::SetState(std::span<const double> state) {
  WEFT_CHECK_EQ(state.size(), state_.size()) << "state of " << spec_->id;
  const auto nq = static_cast<size_t>(simulation_.nq());
  simulation_.Reset(state.first(nq), state.subspan(nq));
  Settle();
}

void MujocoEnvironment::Info(std::span<double> values) const {
  WEFT_CHECK_EQ(values.size(), info_.size()) << "info of " << spec_->id;
  std::copy(info_.begin(), info_.end(), values.begin());
}

void MujocoEnvironment::Render(Canvas& canvas) const {
  FreeCamera free = simulation_.DistantCamera();
  if (camera_distance_ > 0) free.distance = camera_distance_;
  simulation_.Render(free, canvas.camera(), canvas.picture());
}

void MujocoEnvironment::Simulate(ActionRow action) {
  for (size_t i = 0; i < control_.size(); ++i) control_[i] = action.real(static_cast<int64_t>(i));
  simulation_.Step(control_, frame_skip_);
}

double MujocoEnvironment::ControlCost(ActionRow action, double weight) const {
  return weft::ControlCost(action, simulation_.nu(), weight);
}

double SumOfSquares(std::span<const double> values) {
  return NumpySum<double>(std::ssize(values), [&](int64_t i) {
    const double value = values[static_cast<size_t>(i)];
    return value * value;
  });
}

}  // namespace weft
