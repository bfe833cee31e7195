#include "environments/mujoco_task/task_config.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/check.h"
#include "base/file.h"
#include "base/text.h"
#include "environments/asset.h"
#include "environments/mujoco/mjcf_files.h"
#include "environments/mujoco/mujoco_elements.h"
#include "environments/mujoco/mujoco_model.h"
#include "environments/mujoco_task/task_environment.h"

namespace weft {
namespace {

constexpr char kPrefix[] = "mujoco:";

std::vector<std::string> QuantityKinds() {
  std::vector<std::string> kinds;
  for (const auto& kind : MujocoQuantity::Kinds()) kinds.emplace_back(kind.name);
  return kinds;
}
std::vector<std::string> TermKinds() {
  std::vector<std::string> kinds = QuantityKinds();
  kinds.insert(kinds.end(), {"healthy", "control_cost"});
  return kinds;
}

// A list of sections of one type, which are made by their kinds or names.
template <class T>
SectionList ListOf(std::deque<T>& list, std::vector<std::string> kinds) {
  return {.clear = [&list] { list.clear(); },
          .make = [&list](const std::string& name) -> Config& { return list.emplace_back(name); },
          .current =
              [&list] {
                std::vector<std::pair<std::string, Config*>> sections;
                for (T& section : list) {
                  if constexpr (requires { section.kind; }) {
                    sections.emplace_back(section.kind, &section);
                  } else {
                    sections.emplace_back(section.name, &section);
                  }
                }
                return sections;
              },
          .kinds = std::move(kinds)};
}

void CheckInterval(const char* key, const std::vector<double>& range) {
  if (range.size() != 2 || !(range[0] < range[1]))
    throw ConfigProblem(key, "must be [low, high] with low < high");
}

// Of a model's files as they were when the process first looked.
std::string ContentOf(const std::string& path) {
  static auto& mutex = *new std::mutex;
  static auto& contents = *new std::map<std::string, std::string>;
  const std::lock_guard lock(mutex);
  std::string& content = contents[path];
  if (!content.empty()) return content;
  std::string all;
  for (const std::string& file : InspectMjcf(path).paths) {
    const MappedFile mapped(file);
    all += std::filesystem::path(file).filename().string() + " " + Sha256(mapped.bytes()) + "\n";
  }
  return content = Sha256({reinterpret_cast<const uint8_t*>(all.data()), all.size()});
}

// The file of a task: its one section.
struct TaskFile : Config {
  explicit TaskFile(TaskConfig& task) : environment(task) {}
  void Fields(FieldVisitor& v) override { v.Section("environment", environment, "the task"); }
  TaskConfig& environment;
};

// The keys under "reward" and "reset".
struct RewardSection : Config {
  explicit RewardSection(TaskConfig& of_task) : task(of_task) {}
  void Fields(FieldVisitor& v) override {
    v.Choice("combine", task.combine, {"sum", "product"}, "how the terms make the reward");
    v.Sections("terms", ListOf(task.terms, TermKinds()), "what is rewarded");
  }
  TaskConfig& task;
};
struct ResetSection : Config {
  explicit ResetSection(TaskConfig& of_task) : task(of_task) {}
  void Fields(FieldVisitor& v) override {
    v.Field("keyframe", task.keyframe, "where episodes begin; empty: the model's first state");
    v.Sections("noise", ListOf(task.noise, {"joint_position", "joint_velocity"}),
               "what is drawn anew for every episode, in this order");
  }
  TaskConfig& task;
};

}  // namespace

void QuantityConfig::Fields(FieldVisitor& v) {
  const auto* known = MujocoQuantity::Find(kind);
  v.Names(kind.c_str(), names, known->help);
  if (known->relates) v.Field("to", to, "the element at the other end");
  v.Field("component", component, "one of the numbers of each element, such as x; empty: all");
}

void ObservationConfig::Fields(FieldVisitor& v) {
  QuantityConfig::Fields(v);
  v.Field("clip", clip, "bound of the observed values; 0: none", Range::AtLeast(0));
}

void ConditionConfig::Fields(FieldVisitor& v) {
  QuantityConfig::Fields(v);
  v.Field("range", range, "[low, high]: outside, the episode ends", Range{}.OrInfinite());
}
void ConditionConfig::Check() const {
  CheckInterval("range", range);
}

void ToleranceConfig::Fields(FieldVisitor& v) {
  v.Field("bounds", bounds, "[low, high] that is worth 1; empty: no tolerance",
          Range{}.OrInfinite());
  v.Field("margin", margin, "distance from the bounds at which the worth has fallen",
          Range::AtLeast(0));
  v.Choice("sigmoid", sigmoid,
           {"gaussian", "hyperbolic", "long_tail", "reciprocal", "cosine", "linear", "quadratic",
            "tanh_squared"},
           "how it falls");
  v.Field("value_at_margin", value_at_margin, "worth at the margin", Range::Between(0, 1));
}
void ToleranceConfig::Check() const {
  if (!bounds.empty() && (bounds.size() != 2 || !(bounds[0] <= bounds[1])))
    throw ConfigProblem("bounds", "must be [low, high]");
  if (bounds.empty() && margin > 0) throw ConfigProblem("bounds", "are missing");
  const bool reaches_zero = sigmoid == "cosine" || sigmoid == "linear" || sigmoid == "quadratic";
  if (value_at_margin == 1 || (value_at_margin == 0 && !reaches_zero))
    throw ConfigProblem("value_at_margin", "must be above 0 and below 1 for sigmoid " + sigmoid);
}

void TermConfig::Fields(FieldVisitor& v) {
  if (amounts()) {
    v.Field(kind.c_str(), amount,
            kind == "healthy" ? "reward of a step after which no termination holds"
                              : "cost of the sum of squares of the action",
            Range::AtLeast(0));
    return;
  }
  QuantityConfig::Fields(v);
  v.Field("weight", weight, "factor of the term");
  v.Field("rate", rate, "the change over the step, per second, in place of the value");
  v.Field("target", target, "what is subtracted, one number each; empty: nothing");
  v.Choice("measure", measure, {"value", "absolute", "square", "norm"},
           "of several numbers: the sum of absolute values or squares, or its root");
  v.Section("tolerance", tolerance, "a number in 0..1: how near it is to an interval");
}

void NoiseConfig::Fields(FieldVisitor& v) {
  v.Names(kind.c_str(), names, "joints, or all");
  v.Field("uniform", uniform, "half width of what is added", Range::AtLeast(0));
  v.Field("normal", normal, "deviation of what is added", Range::AtLeast(0));
  v.Field("between", between, "[low, high] of the value itself, in place of noise");
}
void NoiseConfig::Check() const {
  if ((uniform > 0) + (normal > 0) + !between.empty() > 1)
    throw ConfigProblem(kind, "has more than one of uniform, normal and between");
  if (!between.empty()) CheckInterval("between", between);
}

void ActionConfig::Fields(FieldVisitor& v) {
  v.Field("scaled", scaled, "actions of -1 .. 1 are the ends of the range; false: controls as is");
  v.Field("range", range, "[low, high] of the control; empty: the actuator's ctrlrange");
}
void ActionConfig::Check() const {
  if (!range.empty()) CheckInterval("range", range);
}

std::string TaskModelConfig::Path() const {
  namespace fs = std::filesystem;
  fs::path path(model);
  if (path.is_relative()) path = fs::path(folder.empty() ? "." : folder) / path;
  if (FileExists(path)) {
    const std::string text = path.string();
    return path.is_absolute() || text.starts_with(".") ? text : "./" + text;
  }
  if (IsStandardAsset(model) && model.find('/') == std::string::npos) {
    try {
      AssetPath(model);
      return model;
    } catch (const Error&) {  // said below
    }
  }
  const std::string parent = path.parent_path().string();
  throw Error(
      ErrorCode::kConfig,
      "there is no model file " + path.string() +
          (DirectoryExists(parent) ? DidYouMean(path.filename().string(), ListDirectory(parent))
                                   : ""));
}

void TaskModelConfig::Fields(FieldVisitor& v) {
  v.Field("model", model, "an MJCF file, relative to the task file, or a standard one");
  if (!model.empty()) content = ContentOf(AssetPath(Path()));
  v.Field("frame_skip", frame_skip, "simulation steps per action", Range::Between(1, 10000));
  std::string expected = content;
  v.Field("content", expected,
          "SHA-256 of the model and the files it names, noted when a run starts");
  if (!expected.empty() && expected != content) {
    throw ConfigProblem(
        "content",
        "the model or a file that it names is not what it was when the run started: "
        "put it back, or accept it with environment.arguments.mujoco.content=");
  }
}

TaskConfig::TaskConfig(const std::string& of_id) : id(of_id) {
  const std::string path = of_id.substr(sizeof(kPrefix) - 1);
  const std::string folder = std::filesystem::path(path).parent_path().string();
  mujoco.folder = folder;
  try {
    if (path.ends_with(".xml")) {
      SetModel(std::filesystem::path(path).filename().string());
      ConfigSource::Text("{}", path).Parse(*this);
    } else {
      TaskFile file(*this);
      ConfigSource::File(path).Parse(file);
    }
  } catch (const Error&) {
    problem = std::current_exception();
    mujoco = {};
    mujoco.folder = folder;
  }
}

void TaskConfig::SetModel(const std::string& file) {
  mujoco.model = file;
  const mjModel_& model = *LoadMujocoModel(mujoco.Path());
  observations.emplace_back("joint_position").names = {"all"};
  observations.emplace_back("joint_velocity").names = {"all"};
  const auto actuators = std::ssize(MujocoNames(model, MujocoElement::kActuator));
  if (actuators > 0) actions.emplace_back("all");
  for (int64_t i = 0; i < actuators; ++i) {
    if (!ActuatorOf(model, i).limited) actions.back().scaled = false;
  }
  const auto keyframes = MujocoNames(model, MujocoElement::kKeyframe);
  if (!keyframes.empty()) keyframe = keyframes[0];
}

void TaskConfig::Require() const {
  if (!mujoco.model.empty()) return;
  if (problem) std::rethrow_exception(problem);
  throw ConfigProblem("mujoco.model", "is missing");
}

void TaskConfig::Fields(FieldVisitor& v) {
  v.Section("mujoco", mujoco, "the model");
  v.Sections("observations", ListOf(observations, QuantityKinds()), "what is observed");
  v.Sections("actions", ListOf(actions, {}), "the actuators that actions drive");
  RewardSection reward(*this);
  v.Section("reward", reward, "what is rewarded");
  v.Sections("termination", ListOf(termination, QuantityKinds()),
             "ranges that a healthy state keeps: a step that leaves one is the last, and terminal");
  ResetSection reset(*this);
  v.Section("reset", reset, "where episodes begin");
  v.Field("time_limit", time_limit, "steps until an episode is truncated; 0: none",
          Range::AtLeast(0));
  v.Field("camera", camera, "that films the task; empty: the model's first");
}

void TaskConfig::Check() const {
  Require();
  if (observations.empty()) throw ConfigProblem("observations", "nothing is observed");
  TaskEnvironment environment(*this);
}

}  // namespace weft
