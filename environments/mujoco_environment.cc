#include "environments/mujoco_environment.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace weft {
namespace {

template <class T>
double WeightedSquares(ActionRow action, int64_t size, double weight) {
  T sum = 0;
  for (int64_t i = 0; i < size; ++i) {
    const auto value = static_cast<T>(action.real(i));
    sum += value * value;
  }
  return static_cast<T>(weight) * sum;
}

}  // namespace

void MujocoArguments::Fields(FieldVisitor& v) {
  v.Field("xml_file", xml_file,
          "model: a standard file, or a path that begins with '/', '.' or '~'");
  v.Field("frame_skip", frame_skip, "simulation steps per action", Range::Between(1, 10000));
  v.Field("reset_noise_scale", reset_noise_scale, "spread of the first state", Range::AtLeast(0));
}

MujocoEnvironment::MujocoEnvironment(const MujocoArguments& arguments, VelocityNoise velocity_noise,
                                     EnvironmentSpec spec)
    : simulation_(arguments.xml_file),
      info_(spec.info.size()),
      frame_skip_(arguments.frame_skip),
      reset_noise_scale_(arguments.reset_noise_scale),
      velocity_noise_(velocity_noise),
      control_(static_cast<size_t>(simulation_.nu())),
      state_(static_cast<size_t>(simulation_.nq() + simulation_.nv())),
      spec_(std::make_unique<EnvironmentSpec>(std::move(spec))) {
  Box box;
  const auto range = simulation_.control_range();
  for (size_t i = 0; i < range.size(); i += 2) {
    box.low.push_back(range[i]);
    box.high.push_back(range[i + 1]);
  }
  spec_->action = std::move(box);
}

void MujocoEnvironment::ObserveReals(int64_t size) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  spec_->observation = {{.name = "observation",
                         .shape = {size},
                         .dtype = DType::kFloat64,
                         .low = {-kInfinity},
                         .high = {kInfinity}}};
}

void MujocoEnvironment::Reset(Rng& rng, StepRow out) {
  const auto initial = simulation_.initial_position();
  const size_t nq = initial.size();
  const auto uniform = [&] { return rng.Uniform(-reset_noise_scale_, reset_noise_scale_); };
  for (size_t i = 0; i < nq; ++i) state_[i] = initial[i] + uniform();
  for (size_t i = nq; i < state_.size(); ++i) {
    state_[i] =
        velocity_noise_ == VelocityNoise::kUniform ? uniform() : reset_noise_scale_ * rng.Normal();
  }
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
}

void MujocoEnvironment::Info(std::span<double> values) const {
  WEFT_CHECK_EQ(values.size(), info_.size()) << "info of " << spec_->id;
  std::copy(info_.begin(), info_.end(), values.begin());
}

void MujocoEnvironment::Simulate(ActionRow action) {
  for (size_t i = 0; i < control_.size(); ++i) control_[i] = action.real(static_cast<int64_t>(i));
  simulation_.Step(control_, frame_skip_);
}

double MujocoEnvironment::ControlCost(ActionRow action, double weight) const {
  return action.dtype() == DType::kFloat32
             ? WeightedSquares<float>(action, simulation_.nu(), weight)
             : WeightedSquares<double>(action, simulation_.nu(), weight);
}

}  // namespace weft
