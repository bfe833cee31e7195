#include "environments/mujoco_task/task_environment.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "environments/drawing/canvas.h"
#include "environments/mujoco/control_cost.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Runs `part`, whose ConfigProblems are about the entry `index` of the list at `key`.
template <class Part>
auto At(const std::string& key, size_t index, const Part& part) {
  try {
    return part();
  } catch (const ConfigProblem& problem) {
    throw ConfigProblem(key + "." + std::to_string(index) + "." + problem.key(), problem.reason());
  }
}

MujocoPhysics PhysicsOf(const TaskConfig& config) {
  config.Require();
  try {
    return MujocoPhysics(config.mujoco.Path(), nullptr);
  } catch (const Error& error) {
    throw ConfigProblem("mujoco.model", error.message());
  }
}

}  // namespace

TaskEnvironment::TaskEnvironment(const TaskConfig& config)
    : spec_(std::make_unique<EnvironmentSpec>()),
      physics_(PhysicsOf(config)),
      frame_skip_(config.mujoco.frame_skip),
      seconds_(physics_.timestep() * static_cast<double>(frame_skip_)),
      product_(config.combine == "product"),
      camera_(config.camera) {
  for (size_t i = 0; i < config.observations.size(); ++i) {
    const ObservationConfig& observation = config.observations[i];
    observed_.push_back(At("observations", i, [&] {
      return Observed{MujocoQuantity(physics_, observation.Name()),
                      observation.clip > 0 ? observation.clip : kInfinity};
    }));
    derives_ = derives_ || observed_.back().quantity.derived();
  }
  CompileActions(config);
  for (size_t i = 0; i < config.terms.size(); ++i) {
    const TermConfig& term = config.terms[i];
    Term compiled{.weight = term.weight};
    if (term.kind == "healthy") {
      compiled.healthy = term.amount;
    } else if (term.kind == "control_cost") {
      compiled.cost = term.amount;
    } else {
      compiled.measured =
          At("reward.terms", i, [&] { return std::make_unique<MeasuredTerm>(physics_, term); });
      derives_ = derives_ || compiled.measured->derived();
    }
    terms_.push_back(std::move(compiled));
  }
  for (size_t i = 0; i < config.termination.size(); ++i) {
    conditions_.push_back(
        At("termination", i, [&] { return Condition(physics_, config.termination[i]); }));
    derives_ = derives_ || conditions_.back().derived();
  }
  CompileReset(config);
  if (!config.camera.empty())
    MujocoIndices(physics_.model(), MujocoElement::kCamera, {config.camera}, "camera");
  worth_.resize(terms_.size());
  CompileSpec(config);
}

void TaskEnvironment::CompileActions(const TaskConfig& config) {
  const auto count = physics_.control().size();
  control_.assign(count, 0);
  std::vector<bool> taken(count);
  for (size_t i = 0; i < config.actions.size(); ++i) {
    const ActionConfig& action = config.actions[i];
    const std::string key = "actions." + std::to_string(i);
    for (const int64_t index :
         MujocoIndices(physics_.model(), MujocoElement::kActuator, {action.name}, key)) {
      MujocoActuator actuator = ActuatorOf(physics_.model(), index);
      if (actuator.controls != 1) {
        throw ConfigProblem(key, actuator.name + " has " + std::to_string(actuator.controls) +
                                     " controls: actions drive actuators that have one");
      }
      const auto control = static_cast<size_t>(actuator.control);
      if (taken[control]) throw ConfigProblem(key, actuator.name + " is driven twice");
      taken[control] = true;
      Driven driven{.control = control,
                    .middle = 0,
                    .half = 1,
                    .actuator = std::move(actuator),
                    .scaled = action.scaled};
      MujocoActuator& of = driven.actuator;
      if (!action.range.empty()) {
        of.low = action.range[0];
        of.high = action.range[1];
      } else if (!of.limited) {
        of.low = -kInfinity;
        of.high = kInfinity;
      }
      if (action.scaled) {
        if (!std::isfinite(of.low) || !std::isfinite(of.high)) {
          throw ConfigProblem(key, of.name + " has no ctrlrange: give a range, or scaled: false");
        }
        driven.middle = (of.low + of.high) / 2;
        driven.half = (of.high - of.low) / 2;
      }
      driven_.push_back(std::move(driven));
    }
  }
}

void TaskEnvironment::CompileReset(const TaskConfig& config) {
  physics_.Reset();
  if (!config.keyframe.empty()) {
    const auto index = MujocoIndices(physics_.model(), MujocoElement::kKeyframe, {config.keyframe},
                                     "reset.keyframe");
    const MujocoKeyframe key = KeyframeOf(physics_.model(), index[0]);
    std::ranges::copy(key.position, physics_.position().begin());
    std::ranges::copy(key.velocity, physics_.velocity().begin());
    std::ranges::copy(key.activation, physics_.activation().begin());
    std::ranges::copy(key.control, control_.begin());
  }
  first_control_ = control_;
  GetState(first_);
  state_ = first_;
  const size_t velocities = physics_.position().size();
  for (size_t i = 0; i < config.noise.size(); ++i) {
    const NoiseConfig& noise = config.noise[i];
    Noise compiled{
        .state = {}, .uniform = noise.uniform, .normal = noise.normal, .between = noise.between};
    const auto joints = At("reset.noise", i, [&] {
      return MujocoIndices(physics_.model(), MujocoElement::kJoint, noise.names, noise.kind);
    });
    const bool of_velocity = noise.kind == "joint_velocity";
    for (const int64_t index : joints) {
      const MujocoJoint joint = physics_.joint(index);
      const bool free = joint.type == JointType::kFree, ball = joint.type == JointType::kBall;
      const int64_t begin = of_velocity ? joint.velocity : joint.position;
      const int64_t size = free ? 7 - of_velocity : ball ? 4 - of_velocity : 1;
      for (int64_t k = begin; k < begin + size; ++k)
        compiled.state.push_back(static_cast<size_t>(k) + (of_velocity ? velocities : 0));
    }
    noise_.push_back(std::move(compiled));
  }
}

void TaskEnvironment::CompileSpec(const TaskConfig& config) {
  Leaf leaf{.name = "observation",
            .shape = {},
            .dtype = DType::kFloat64,
            .low = {},
            .high = {},
            .elements = {}};
  for (const Observed& observed : observed_) {
    const auto& labels = observed.quantity.labels();
    leaf.elements.insert(leaf.elements.end(), labels.begin(), labels.end());
    leaf.low.insert(leaf.low.end(), labels.size(), -observed.clip);
    leaf.high.insert(leaf.high.end(), labels.size(), observed.clip);
  }
  leaf.shape = {std::ssize(leaf.elements)};
  Box box;
  for (const Driven& driven : driven_) {
    box.low.push_back(driven.scaled ? -1 : driven.actuator.low);
    box.high.push_back(driven.scaled ? 1 : driven.actuator.high);
  }
  std::vector<std::string> info;
  for (const TermConfig& term : config.terms)
    info.push_back(term.kind + (term.names.empty() ? "" : " " + Join(term.names, ", ")));
  *spec_ = {.id = config.id,
            .observation = {std::move(leaf)},
            .action = std::move(box),
            .time_limit = config.time_limit,
            .info = std::move(info),
            .appearance = {.width = 480, .height = 360, .frames_per_second = 1 / seconds_}};
}

void TaskEnvironment::Reset(Rng& rng, StepRow out) {
  std::ranges::copy(first_, state_.begin());
  for (const Noise& noise : noise_) {
    for (const size_t i : noise.state) {
      if (noise.uniform > 0) {
        state_[i] += rng.Uniform(-noise.uniform, noise.uniform);
      } else if (noise.normal > 0) {
        state_[i] += noise.normal * rng.Normal();
      } else if (!noise.between.empty()) {
        state_[i] = rng.Uniform(noise.between[0], noise.between[1]);
      }
    }
  }
  SetState(state_);
  Observe(out.observation);
  out.First();
}

void TaskEnvironment::Step(ActionRow action, Rng&, StepRow out) {
  for (Term& term : terms_) {
    if (term.measured) term.measured->Begin();
  }
  for (size_t i = 0; i < driven_.size(); ++i) {
    const Driven& driven = driven_[i];
    control_[driven.control] = driven.middle + driven.half * action.real(static_cast<int64_t>(i));
  }
  physics_.Step(control_, frame_skip_, derives_);
  if (const std::string divergence = physics_.Divergence(); !divergence.empty()) {
    throw Error(ErrorCode::kDiverged, "the simulation diverges: " + divergence +
                                          "; a smaller timestep or narrower ranges of the controls "
                                          "may help");
  }
  const bool healthy =
      std::ranges::all_of(conditions_, [](Condition& condition) { return condition.Holds(); });
  double reward = product_ ? 1 : 0;
  for (size_t i = 0; i < terms_.size(); ++i) {
    Term& term = terms_[i];
    worth_[i] = term.measured      ? term.weight * term.measured->Worth(seconds_)
                : term.healthy > 0 ? (healthy ? term.healthy : 0)
                                   : -ControlCost(action, std::ssize(driven_), term.cost);
    reward = product_ ? reward * worth_[i] : reward + worth_[i];
  }
  Observe(out.observation);
  out.Next(reward, !healthy);
}

void TaskEnvironment::GetState(std::vector<double>& state) const {
  auto& physics = const_cast<MujocoPhysics&>(physics_);
  state.clear();
  for (const auto part : {physics.position(), physics.velocity(), physics.activation()})
    state.insert(state.end(), part.begin(), part.end());
}

void TaskEnvironment::SetState(std::span<const double> state) {
  WEFT_CHECK_EQ(state.size(), first_.size()) << "state of " << spec_->id;
  physics_.Reset();
  auto from = state.begin();
  for (const auto part : {physics_.position(), physics_.velocity(), physics_.activation()}) {
    std::copy_n(from, part.size(), part.begin());
    from += std::ssize(part);
  }
  physics_.NormaliseQuaternions();
  std::ranges::copy(first_control_, control_.begin());
  physics_.Forward();
}

void TaskEnvironment::Observe(ObservationRow out) {
  auto* to = out.Leaf<double>();
  for (const Observed& observed : observed_) {
    observed.quantity.Read(to);
    double* const end = to + observed.quantity.size();
    if (observed.clip == kInfinity) {
      to = end;
      continue;
    }
    for (; to < end; ++to) *to = std::clamp(*to, -observed.clip, observed.clip);
  }
}

void TaskEnvironment::Info(std::span<double> values) const {
  WEFT_CHECK_EQ(values.size(), worth_.size()) << "info of " << spec_->id;
  std::ranges::copy(worth_, values.begin());
}

void TaskEnvironment::Render(Canvas& canvas) const {
  physics_.Render(canvas.camera().empty() ? camera_ : canvas.camera(), canvas.picture());
}

void TaskEnvironment::Save(Writer& out) const {
  std::vector<double> state;
  physics_.GetState(state);
  out.Write(std::span<const double>(state));
}

void TaskEnvironment::Load(Reader& in) {
  physics_.SetStepState(in.ReadVector<double>());
}

std::vector<std::string> TaskEnvironment::Facts() const {
  std::vector<std::string> lines;
  for (const std::string& joint : JointLines(physics_.model())) lines.push_back("joint " + joint);
  for (const Driven& driven : driven_) {
    char range[80];
    std::snprintf(range, sizeof(range), "%s control %.6g .. %.6g",
                  driven.scaled ? "action -1 .. 1 is" : "action is", driven.actuator.low,
                  driven.actuator.high);
    lines.push_back("actuator " + driven.actuator.name + ": " + range +
                    (driven.actuator.facts.empty() ? "" : ", " + driven.actuator.facts));
  }
  return lines;
}

std::vector<std::string> TaskEnvironment::Warnings() const {
  constexpr double kTooFar = 10;  // degrees for radians are 57
  std::vector<std::string> lines;
  for (const Driven& driven : driven_) {
    if (driven.actuator.reach < kTooFar) continue;
    char text[120];
    std::snprintf(text, sizeof(text), "its target exceeds the range of its joint %.0f-fold",
                  driven.actuator.reach);
    lines.push_back("actuator " + driven.actuator.name + ": " + text +
                    ": MuJoCo takes ranges of joints in degrees, but control ranges as they are");
  }
  return lines;
}

namespace {

EnvironmentEntry MujocoTask(const std::string& id) {
  EnvironmentEntry entry = MakeEnvironmentEntry<TaskEnvironment>("a task for a MuJoCo model", id);
  entry.notes = [](const Config& config) {
    const TaskEnvironment environment(dynamic_cast<const TaskConfig&>(config));
    return EnvironmentNotes{environment.Facts(), environment.Warnings()};
  };
  return entry;
}

[[maybe_unused]] const bool kRegistered = EnvironmentSchemes().Add("mujoco", MujocoTask);

}  // namespace

}  // namespace weft
