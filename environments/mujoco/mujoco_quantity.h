// What can be measured in a simulation, by the names of the model's elements: compiled once to the
// addresses of numbers in MuJoCo's data, so that reading looks up no name and allocates nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "environments/mujoco/mujoco_physics.h"

namespace weft {

// What to measure: `kind` of the elements `names`, and for kinds that relate two elements, `to`
// another one.
struct QuantityName {
  std::string kind;
  std::vector<std::string> names;
  std::string to = "";
  std::string component = "";  // one of the numbers of each element, such as x; "": all
};

class MujocoQuantity {
 public:
  // Each with what it is, shape and unit.
  struct Kind {
    const char* name;
    const char* help;
    bool relates;  // has a `to`
    bool settled;  // a function of positions, velocities and controls alone
  };
  static const std::vector<Kind>& Kinds();
  static const Kind* Find(const std::string& kind);

  // Throws ConfigProblem(kind, "to" or "component"). The physics must live longer, where it is or
  // moved to.
  MujocoQuantity(const MujocoPhysics& physics, const QuantityName& name);

  size_t size() const { return labels_.size(); }
  // Of each number: "joint_position root.quaternion.w".
  const std::vector<std::string>& labels() const { return labels_; }
  // MuJoCo must derive it from the state: it is more than positions, velocities and controls.
  bool derived() const { return derived_; }

  void Read(double* to) const {
    for (const Run& run : runs_) to = Read(run, to);
  }

 private:
  enum class Op : uint8_t { kCopy, kDifference, kDistance, kPointVelocity };
  // `count` numbers from `a`; of kDifference b - a, of kDistance its norm; of kPointVelocity
  // `component` or all of the velocity of a point at `a` that moves with a body whose velocity
  // about `b` is `twist`.
  struct Run {
    Op op;
    int32_t count;
    const double* a;
    const double* b = nullptr;
    const double* twist = nullptr;
    int32_t component = -1;
  };

  static double* Read(const Run& run, double* to);
  void Add(const std::string& label, const double* address);

  std::vector<Run> runs_;
  std::vector<std::string> labels_;
  bool derived_ = false;
};

}  // namespace weft
