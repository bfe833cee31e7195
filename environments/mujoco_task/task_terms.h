// The compiled parts of a task: numbers that it reads from the simulation and turns into rewards,
// and conditions on them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "environments/dm_control/tolerance.h"
#include "environments/mujoco/mujoco_quantity.h"
#include "environments/mujoco_task/task_config.h"

namespace weft {

// A term of the reward that is a measured quantity.
class MeasuredTerm {
 public:
  // Throws ConfigProblem, its key relative to the term.
  MeasuredTerm(const MujocoPhysics& physics, const TermConfig& config);

  // Before a step, when the term needs to know how it was.
  void Begin();
  double Worth(double seconds);  // after a step that took so long
  bool derived() const { return quantity_.derived(); }

 private:
  enum class Measure { kValue, kAbsolute, kSquare, kNorm };

  MujocoQuantity quantity_;
  std::vector<double> values_, before_;  // of now; when the step began
  std::vector<double> target_;
  bool rate_;
  Measure measure_;
  bool tolerated_;
  double low_ = 0, high_ = 0;
  Margin margin_;
};

// That some numbers keep a range.
class Condition {
 public:
  Condition(const MujocoPhysics& physics, const ConditionConfig& config);
  bool Holds();  // false for NaN, too
  bool derived() const { return quantity_.derived(); }

 private:
  MujocoQuantity quantity_;
  std::vector<double> values_;
  double low_, high_;
};

}  // namespace weft
