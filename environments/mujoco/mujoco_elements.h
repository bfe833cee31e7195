// The elements of a model by name, and what people want to know of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

struct mjModel_;

namespace weft {

enum class MujocoElement { kBody, kJoint, kSite, kActuator, kSensor, kTendon, kKeyframe, kCamera };

// In the model's order; "" for an element without a name. An actuator without one goes by the joint
// that it moves, if no other actuator does.
std::vector<std::string> MujocoNames(const mjModel_& model, MujocoElement kind);

// The indices that names stand for: of every element, in the model's order, for the one name "all"
// (unless an element is called so). Throws ConfigProblem(key) for a name that the model lacks,
// saying which it has.
std::vector<int64_t> MujocoIndices(const mjModel_& model, MujocoElement kind,
                                   const std::vector<std::string>& names, const std::string& key);

struct MujocoActuator {
  std::string name;
  int64_t control, controls;  // index of its first control, and how many it has
  bool limited;
  double low, high;  // of the first control, as the file says: angles are not converted
  // A position servo on a limited hinge or slide joint, which it asks for up to `reach` times the
  // farthest that the joint can go; 0 for other actuators.
  double reach;
  std::string facts;  // "servo of joint elbow, range -0.523599 .. 0.523599 rad"
};
MujocoActuator ActuatorOf(const mjModel_& model, int64_t index);

struct MujocoKeyframe {
  std::span<const double> position, velocity, activation, control;
};
MujocoKeyframe KeyframeOf(const mjModel_& model, int64_t index);

// The names of the numbers of a joint's position or velocity, of the type that MuJoCo numbers so;
// {""} of a single one.
const std::vector<std::string>& JointComponents(int type, bool velocity);

// What each number of the model's positions and then velocities is: "joint_position
// root.quaternion.w".
std::vector<std::string> StateLabels(const mjModel_& model);

// "elbow: hinge of body link, range -0.523599 .. 0.523599 rad", a line per joint.
std::vector<std::string> JointLines(const mjModel_& model);

}  // namespace weft
