#include "environments/dm_control/suite_environment.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>

#include "base/check.h"
#include "environments/drawing/canvas.h"

namespace weft {

SuiteEnvironment::SuiteEnvironment(const SuiteTask& task)
    : physics_(std::string("dm_control/suite/") + task.xml_file, task.edit),
      steps_(task.control_timestep == 0
                 ? 1
                 : std::llround(task.control_timestep / physics_.timestep())),
      control_(physics_.control().size()),
      spec_(std::make_unique<EnvironmentSpec>()) {
  Box box;
  const auto range = physics_.control_range();
  for (size_t i = 0; i < range.size(); i += 2) {
    box.low.push_back(range[i]);
    box.high.push_back(range[i + 1]);
  }
  *spec_ = {
      .id = task.id,
      .observation = {},
      .action = std::move(box),
      .time_limit = task.time_limit,
      .appearance = {.width = 320,
                     .height = 240,
                     .frames_per_second = 1 / (physics_.timestep() * static_cast<double>(steps_))}};
}

void SuiteEnvironment::Declare(const std::vector<Entry>& entries) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const Entry& entry : entries) {
    spec_->observation.push_back({.name = entry.name,
                                  .shape = entry.shape,
                                  .dtype = DType::kFloat64,
                                  .low = {-kInfinity},
                                  .high = {kInfinity}});
  }
}

void SuiteEnvironment::Reset(Rng& rng, StepRow out) {
  physics_.Reset();
  Draw(rng);
  physics_.Forward();
  Observe(out.observation);
  out.First();
}

void SuiteEnvironment::Step(ActionRow action, Rng&, StepRow out) {
  for (size_t i = 0; i < control_.size(); ++i) control_[i] = action.real(static_cast<int64_t>(i));
  physics_.Step(control_, steps_);
  Observe(out.observation);
  out.Next(Reward(), Terminated());
}

void SuiteEnvironment::Render(Canvas& canvas) const {
  physics_.Render(canvas.camera(), canvas.picture());
}

void SuiteEnvironment::Save(Writer& out) const {
  std::vector<double> state;
  physics_.GetState(state);
  out.Write(std::span<const double>(state));
}

void SuiteEnvironment::Load(Reader& in) {
  physics_.SetStepState(in.ReadVector<double>());
}

void SuiteEnvironment::DrawJoints(Rng& rng) {
  const auto position = physics_.position();
  for (int64_t i = 0; i < physics_.joints(); ++i) {
    const MujocoJoint joint = physics_.joint(i);
    const auto at = static_cast<size_t>(joint.position);
    switch (joint.type) {
      case JointType::kHinge:
        position[at] = joint.limited ? rng.Uniform(joint.low, joint.high)
                                     : rng.Uniform(-std::numbers::pi, std::numbers::pi);
        break;
      case JointType::kSlide:
        if (joint.limited) position[at] = rng.Uniform(joint.low, joint.high);
        break;
      case JointType::kBall:
        WEFT_CHECK(!joint.limited) << "a limited ball joint in " << spec_->id;
        DrawDirection(rng, position.subspan(at, 4));
        break;
      case JointType::kFree: {
        // Uniform, not normal: an error of the suite that its benchmarks keep.
        const auto quaternion = position.subspan(at + 3, 4);
        for (double& value : quaternion) value = rng.Uniform();
        const double norm = Norm(quaternion);
        for (double& value : quaternion) value /= norm;
        break;
      }
    }
  }
}

void SuiteEnvironment::FailToDraw() const {
  throw Error(ErrorCode::kInternal, spec_->id + " found no first state without contacts");
}

double SuiteEnvironment::SmallControl() const {
  const auto control = physics_.control();
  double sum = 0;
  for (const double value : control) {
    sum +=
        Tolerance(value, 0, 0, {.margin = 1, .sigmoid = Sigmoid::kQuadratic, .value_at_margin = 0});
  }
  return sum / static_cast<double>(control.size());
}

void DrawDirection(Rng& rng, std::span<double> values) {
  for (double& value : values) value = rng.Normal();
  const double norm = Norm(values);
  for (double& value : values) value /= norm;
}

}  // namespace weft
