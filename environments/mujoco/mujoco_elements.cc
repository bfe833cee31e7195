#include "environments/mujoco/mujoco_elements.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <mujoco/mujoco.h>

#include "base/config.h"
#include "base/text.h"

namespace weft {
namespace {

struct Kind {
  const char* word;
  mjtObj object;
  mjtSize mjModel::*count;
};
// In the order of MujocoElement.
constexpr Kind kKinds[] = {
    {"body", mjOBJ_BODY, &mjModel::nbody},       {"joint", mjOBJ_JOINT, &mjModel::njnt},
    {"site", mjOBJ_SITE, &mjModel::nsite},       {"actuator", mjOBJ_ACTUATOR, &mjModel::nactuator},
    {"sensor", mjOBJ_SENSOR, &mjModel::nsensor}, {"tendon", mjOBJ_TENDON, &mjModel::ntendon},
    {"keyframe", mjOBJ_KEY, &mjModel::nkey},     {"camera", mjOBJ_CAMERA, &mjModel::ncam}};
const Kind& Of(MujocoElement kind) {
  return kKinds[static_cast<size_t>(kind)];
}

// The name of an element, or its number where it has none.
std::string Shown(const mjModel& model, MujocoElement kind, int64_t index) {
  const std::string name = MujocoNames(model, kind)[static_cast<size_t>(index)];
  return name.empty() ? "(number " + std::to_string(index) + ")" : name;
}

std::string JointRange(const mjModel& model, int joint) {
  const char* unit = model.jnt_type[joint] == mjJNT_SLIDE ? "m" : "rad";
  if (model.jnt_limited[joint] == 0) return std::string("unlimited, ") + unit;
  char text[80];
  std::snprintf(text, sizeof(text), "range %.6g .. %.6g %s", model.jnt_range[2 * joint],
                model.jnt_range[2 * joint + 1], unit);
  return text;
}

}  // namespace

std::vector<std::string> MujocoNames(const mjModel& model, MujocoElement kind) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < model.*Of(kind).count; ++i) {
    const char* name = mj_id2name(&model, Of(kind).object, static_cast<int>(i));
    names.emplace_back(name != nullptr ? name : "");
  }
  if (kind != MujocoElement::kActuator) return names;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!names[i].empty() || model.actuator_trntype[i] != mjTRN_JOINT) continue;
    const char* joint = mj_id2name(&model, mjOBJ_JOINT, model.actuator_trnid[2 * i]);
    if (joint != nullptr && std::ranges::find(names, joint) == names.end()) names[i] = joint;
  }
  return names;
}

std::vector<int64_t> MujocoIndices(const mjModel& model, MujocoElement kind,
                                   const std::vector<std::string>& names, const std::string& key) {
  const std::vector<std::string> known = MujocoNames(model, kind);
  std::vector<int64_t> indices;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(known, name);
    if (found != known.end() && !name.empty()) {
      indices.push_back(found - known.begin());
      continue;
    }
    if (name == "all" && names.size() == 1) {
      for (int64_t i = 0; i < model.*Of(kind).count; ++i) indices.push_back(i);
      break;
    }
    std::vector<std::string> choices;
    std::ranges::copy_if(known, std::back_inserter(choices),
                         [](const std::string& choice) { return !choice.empty(); });
    constexpr size_t kMaxShown = 30;
    const bool cut = choices.size() > kMaxShown;
    const std::string meant = DidYouMean(name, choices);
    if (cut) choices.resize(kMaxShown);
    throw ConfigProblem(
        key, std::string("the model has no ") + Of(kind).word + " \"" + name + "\"" + meant + "; " +
                 (choices.empty() ? "none has a name"
                                  : "it has " + Join(choices, ", ") + (cut ? ", ..." : "")));
  }
  return indices;
}

MujocoActuator ActuatorOf(const mjModel& model, int64_t index) {
  const auto i = static_cast<size_t>(index);
  const int control = model.actuator_ctrladr[i];
  MujocoActuator actuator{.name = Shown(model, MujocoElement::kActuator, index),
                          .control = model.actuator_ctrladr[i],
                          .controls = model.actuator_ctrlnum[i],
                          .limited = model.actuator_ctrllimited[control] != 0,
                          .low = model.actuator_ctrlrange[2 * control],
                          .high = model.actuator_ctrlrange[2 * control + 1],
                          .reach = 0,
                          .facts = ""};
  const mjtNum* gain = model.actuator_gainprm + mjNGAIN * i;
  const mjtNum* bias = model.actuator_biasprm + mjNBIAS * i;
  const bool servo = model.actuator_gaintype[i] == mjGAIN_FIXED &&
                     model.actuator_biastype[i] == mjBIAS_AFFINE && gain[0] != 0 && bias[1] < 0;
  if (model.actuator_trntype[i] != mjTRN_JOINT) return actuator;
  const int joint = model.actuator_trnid[2 * i];
  actuator.facts = std::string(servo ? "servo of" : "moves") + " joint " +
                   Shown(model, MujocoElement::kJoint, joint) + ", " + JointRange(model, joint);
  const bool scalar = model.jnt_type[joint] == mjJNT_HINGE || model.jnt_type[joint] == mjJNT_SLIDE;
  const double gear = std::abs(model.actuator_gear[6 * model.actuator_outadr[i]]);
  if (!servo || !scalar || !actuator.limited || model.jnt_limited[joint] == 0 || gear == 0)
    return actuator;
  const double target =
      std::max(std::abs(actuator.low), std::abs(actuator.high)) * gain[0] / (-bias[1] * gear);
  const double farthest =
      std::max(std::abs(model.jnt_range[2 * joint]), std::abs(model.jnt_range[2 * joint + 1]));
  if (farthest > 0) actuator.reach = std::abs(target) / farthest;
  return actuator;
}

MujocoKeyframe KeyframeOf(const mjModel& model, int64_t index) {
  const auto part = [&](const mjtNum* values, mjtSize size) {
    return std::span<const double>(values + index * size, static_cast<size_t>(size));
  };
  return {.position = part(model.key_qpos, model.nq),
          .velocity = part(model.key_qvel, model.nv),
          .activation = part(model.key_act, model.na),
          .control = part(model.key_ctrl, model.nu)};
}

const std::vector<std::string>& JointComponents(int type, bool velocity) {
  using Names = std::vector<std::string>;
  static const auto& pose =
      *new Names{"x", "y", "z", "quaternion.w", "quaternion.x", "quaternion.y", "quaternion.z"};
  static const auto& twist = *new Names{"x", "y", "z", "rotation.x", "rotation.y", "rotation.z"};
  static const auto& quaternion = *new Names{"w", "x", "y", "z"};
  static const auto& vector = *new Names{"x", "y", "z"};
  static const auto& one = *new Names{""};
  if (type == mjJNT_FREE) return velocity ? twist : pose;
  if (type == mjJNT_BALL) return velocity ? vector : quaternion;
  return one;
}

std::vector<std::string> StateLabels(const mjModel& model) {
  std::vector<std::string> labels;
  for (const bool velocity : {false, true}) {
    for (int i = 0; i < model.njnt; ++i) {
      for (const std::string& part : JointComponents(model.jnt_type[i], velocity)) {
        labels.push_back((velocity ? "joint_velocity " : "joint_position ") +
                         Shown(model, MujocoElement::kJoint, i) + (part.empty() ? "" : "." + part));
      }
    }
  }
  return labels;
}

std::vector<std::string> JointLines(const mjModel& model) {
  static constexpr const char* kTypes[] = {"free", "ball", "slide", "hinge"};
  std::vector<std::string> lines;
  for (int i = 0; i < model.njnt; ++i) {
    const int type = model.jnt_type[i];
    const bool scalar = type == mjJNT_SLIDE || type == mjJNT_HINGE;
    lines.push_back(Shown(model, MujocoElement::kJoint, i) + ": " + kTypes[type] + " of body " +
                    Shown(model, MujocoElement::kBody, model.jnt_bodyid[i]) +
                    (scalar ? ", " + JointRange(model, i) : ""));
  }
  return lines;
}

}  // namespace weft
