#include "environments/mujoco/mujoco_quantity.h"

#include <algorithm>
#include <cmath>
#include <mujoco/mujoco.h>

#include "base/config.h"
#include "base/text.h"
#include "environments/mujoco/mujoco_elements.h"

namespace weft {
namespace {

using Names = std::vector<std::string>;

// Never destroyed.
const Names& kVector = *new Names{"x", "y", "z"};
const Names& kQuaternion = *new Names{"w", "x", "y", "z"};
const Names& kOne = *new Names{""};

Names Numbered(int64_t count) {
  if (count == 1) return kOne;
  Names names;
  for (int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

MujocoElement ElementOf(const std::string& kind) {
  if (kind.starts_with("joint")) return MujocoElement::kJoint;
  if (kind.starts_with("body") || kind.starts_with("subtree")) return MujocoElement::kBody;
  if (kind.starts_with("site")) return MujocoElement::kSite;
  if (kind.starts_with("tendon")) return MujocoElement::kTendon;
  return kind == "sensor" ? MujocoElement::kSensor : MujocoElement::kActuator;
}

}  // namespace

const std::vector<MujocoQuantity::Kind>& MujocoQuantity::Kinds() {
  static const auto& kinds = *new std::vector<Kind>{
      {"joint_position", "of joints: rad or m; a ball has w x y z, a free joint x y z w x y z",
       false, true},
      {"joint_velocity", "of joints: rad/s or m/s; a ball has 3, a free joint 3 + 3", false, true},
      {"body_position", "of the frames of bodies in the world: x y z, m", false, true},
      {"body_quaternion", "of the frames of bodies in the world: w x y z", false, true},
      {"body_upright", "of bodies: the z axis's part along the world's, 1 to -1", false, true},
      {"body_velocity", "of the frames of bodies in the world: x y z, m/s", false, true},
      {"body_rotation", "angular velocity of bodies in the world: x y z, rad/s", false, true},
      {"body_offset", "from bodies to another one, in the world: x y z, m", true, true},
      {"body_distance", "from bodies to another one, m", true, true},
      {"subtree_centre", "centre of mass of bodies and all that hang on them: x y z, m", false,
       true},
      {"site_position", "of sites in the world: x y z, m", false, true},
      {"site_offset", "from sites to another one, in the world: x y z, m", true, true},
      {"site_distance", "from sites to another one, m", true, true},
      {"tendon_length", "of tendons, m", false, true},
      {"tendon_velocity", "of tendons, m/s", false, true},
      {"sensor", "all numbers of sensors, in their own units", false, false},
      {"actuator_control", "the controls in force", false, true},
      {"actuator_force", "of actuators, in their own units", false, false}};
  return kinds;
}

const MujocoQuantity::Kind* MujocoQuantity::Find(const std::string& kind) {
  const auto found = std::ranges::find(Kinds(), kind, &Kind::name);
  return found == Kinds().end() ? nullptr : &*found;
}

MujocoQuantity::MujocoQuantity(const MujocoPhysics& physics, const QuantityName& name) {
  const mjModel& model = physics.model();
  const mjData& data = physics.data();
  const std::string& kind = name.kind;
  const MujocoElement element = ElementOf(kind);
  const auto indices = MujocoIndices(model, element, name.names, kind);
  if (name.names.empty()) throw ConfigProblem(kind, "names nothing");
  const Names names = MujocoNames(model, element);
  derived_ = !kind.starts_with("joint_") && kind != "actuator_control";

  int64_t target = 0;
  if (Find(kind)->relates) {
    if (name.to.empty()) throw ConfigProblem(kind, "needs a to: the element at its other end");
    target = MujocoIndices(model, element, {name.to}, "to").at(0);
  }
  bool has_component = name.component.empty();
  Names components;
  for (const int64_t index : indices) {
    const auto i = static_cast<size_t>(index);
    const std::string element_name =
        names[i].empty() ? "(number " + std::to_string(index) + ")" : names[i];
    const auto label = [&](const std::string& part) {
      return kind + " " + element_name + (name.to.empty() ? "" : " to " + name.to) +
             (part.empty() ? "" : "." + part);
    };
    // A number for each component.
    const auto add = [&](const double* address, const Names& parts) {
      components = parts;
      for (size_t k = 0; k < parts.size(); ++k) {
        if (!name.component.empty() && parts[k] != name.component) continue;
        has_component = true;
        Add(label(parts[k]), address + k);
      }
    };
    // A run that computes three numbers, or one of them.
    const auto add_run = [&](Run run, const Names& parts) {
      components = parts;
      for (size_t k = 0; k < parts.size(); ++k) {
        if (!name.component.empty() && parts[k] != name.component) continue;
        has_component = true;
        labels_.push_back(label(parts[k]));
        if (!name.component.empty()) {
          run.count = 1;
          run.component = static_cast<int32_t>(k);
        }
      }
      runs_.push_back(run);
    };
    const auto difference = [&](const double* points) {
      Run run{.op = kind.ends_with("distance") ? Op::kDistance : Op::kDifference,
              .count = 3,
              .a = points + 3 * index,
              .b = points + 3 * target};
      if (run.op == Op::kDistance) return add_run(run, kOne);
      const bool one = !name.component.empty();
      const auto part =
          static_cast<size_t>(std::ranges::find(kVector, name.component) - kVector.begin());
      if (one && part < 3) {  // the difference of one coordinate alone
        run.a += part;
        run.b += part;
      }
      add_run(run, kVector);
    };
    if (kind == "joint_position") {
      add(data.qpos + model.jnt_qposadr[i], JointComponents(model.jnt_type[i], false));
    } else if (kind == "joint_velocity") {
      add(data.qvel + model.jnt_dofadr[i], JointComponents(model.jnt_type[i], true));
    } else if (kind == "body_position") {
      add(data.xpos + 3 * i, kVector);
    } else if (kind == "body_quaternion") {
      add(data.xquat + 4 * i, kQuaternion);
    } else if (kind == "body_upright") {
      add(data.xmat + 9 * i + 8, kOne);
    } else if (kind == "body_rotation") {
      add(data.cvel + 6 * i, kVector);
    } else if (kind == "body_velocity") {
      add_run({.op = Op::kPointVelocity,
               .count = 3,
               .a = data.xpos + 3 * i,
               .b = data.subtree_com + 3 * model.body_rootid[i],
               .twist = data.cvel + 6 * i},
              kVector);
    } else if (kind == "body_offset" || kind == "body_distance") {
      difference(data.xpos);
    } else if (kind == "subtree_centre") {
      add(data.subtree_com + 3 * i, kVector);
    } else if (kind == "site_position") {
      add(data.site_xpos + 3 * i, kVector);
    } else if (kind == "site_offset" || kind == "site_distance") {
      difference(data.site_xpos);
    } else if (kind == "tendon_length") {
      add(data.ten_length + i, kOne);
    } else if (kind == "tendon_velocity") {
      add(data.ten_velocity + i, kOne);
    } else if (kind == "sensor") {
      add(data.sensordata + model.sensor_adr[i], Numbered(model.sensor_dim[i]));
    } else if (kind == "actuator_control") {
      add(data.ctrl + model.actuator_ctrladr[i], Numbered(model.actuator_ctrlnum[i]));
    } else {
      add(data.actuator_force + model.actuator_outadr[i], Numbered(model.actuator_outnum[i]));
    }
  }
  if (!has_component) {
    throw ConfigProblem("component", "must be one of " + Join(components, ", ") + ", not \"" +
                                         name.component + "\"" +
                                         DidYouMean(name.component, components));
  }
}

void MujocoQuantity::Add(const std::string& label, const double* address) {
  labels_.push_back(label);
  // Neighbours are read together.
  if (!runs_.empty() && runs_.back().op == Op::kCopy &&
      runs_.back().a + runs_.back().count == address) {
    ++runs_.back().count;
  } else {
    runs_.push_back({.op = Op::kCopy, .count = 1, .a = address});
  }
}

double* MujocoQuantity::Read(const Run& run, double* to) {
  switch (run.op) {
    case Op::kCopy:
      return std::copy(run.a, run.a + run.count, to);
    case Op::kDifference:
      for (int32_t i = 0; i < run.count; ++i) *to++ = run.b[i] - run.a[i];
      return to;
    case Op::kDistance: {
      double sum = 0;
      for (int32_t i = 0; i < 3; ++i) sum += (run.b[i] - run.a[i]) * (run.b[i] - run.a[i]);
      *to++ = std::sqrt(sum);
      return to;
    }
    case Op::kPointVelocity: {
      const double arm[3] = {run.a[0] - run.b[0], run.a[1] - run.b[1], run.a[2] - run.b[2]};
      const double* spin = run.twist;
      const double velocity[3] = {run.twist[3] + spin[1] * arm[2] - spin[2] * arm[1],
                                  run.twist[4] + spin[2] * arm[0] - spin[0] * arm[2],
                                  run.twist[5] + spin[0] * arm[1] - spin[1] * arm[0]};
      if (run.component >= 0) {
        *to++ = velocity[run.component];
        return to;
      }
      return std::copy(velocity, velocity + 3, to);
    }
  }
  return to;
}

}  // namespace weft
