// An environment that a task describes. The model's names are compiled to addresses when it is
// made; a step looks up no name and allocates nothing.
//
// The simulation steps as dm_control's does (mujoco_physics.h): positions, velocities and all that
// depends on them belong to the new state, forces and their sensors to the last simulation step.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "environments/environment.h"
#include "environments/mujoco/mujoco_elements.h"
#include "environments/mujoco/mujoco_physics.h"
#include "environments/mujoco_task/task_config.h"
#include "environments/mujoco_task/task_terms.h"

namespace weft {

class TaskEnvironment final : public Environment {
 public:
  using Arguments = TaskConfig;
  static constexpr double kStepNanoseconds = 30000;

  // Throws ConfigProblem, its key that of TaskConfig.
  explicit TaskEnvironment(const TaskConfig& config);

  const EnvironmentSpec& spec() const override { return *spec_; }
  void Reset(Rng& rng, StepRow out) override;
  void Step(ActionRow action, Rng& rng, StepRow out) override;
  // Positions, velocities, activations.
  void GetState(std::vector<double>& state) const override;
  void SetState(std::span<const double> state) override;
  void Observe(ObservationRow out) override;
  // What each term of the reward added (or, of a product, the factor that it was).
  void Info(std::span<double> values) const override;
  void Render(Canvas& canvas) const override;
  void Save(Writer& out) const override;
  void Load(Reader& in) override;

  // The tables of joints and actions, for people, and what looks like a mistake in the model.
  std::vector<std::string> Facts() const;
  std::vector<std::string> Warnings() const;

 private:
  struct Observed {
    MujocoQuantity quantity;
    double clip;  // infinite: none
  };
  // Control = middle + half * action.
  struct Driven {
    size_t control;
    double middle, half;
    MujocoActuator actuator;
    bool scaled;
  };
  struct Term {
    std::unique_ptr<MeasuredTerm> measured;  // or:
    double healthy = 0;                      // reward while no condition is broken
    double cost = 0;                         // of the action's sum of squares
    double weight = 1;
  };
  struct Noise {
    std::vector<size_t> state;  // indices into the state
    double uniform, normal;
    std::vector<double> between;
  };

  void CompileActions(const TaskConfig& config);
  void CompileReset(const TaskConfig& config);
  void CompileSpec(const TaskConfig& config);

  std::unique_ptr<EnvironmentSpec> spec_;
  MujocoPhysics physics_;
  int64_t frame_skip_;
  double seconds_;  // that a step takes
  std::vector<Observed> observed_;
  std::vector<Driven> driven_;
  std::vector<Term> terms_;
  bool product_;          // of the terms
  bool derives_ = false;  // reads more than positions, velocities and controls
  std::vector<Condition> conditions_;
  std::vector<Noise> noise_;
  std::vector<double> first_;            // the state that noise is added to
  std::vector<double> control_, state_;  // scratch; control_ holds what actions do not drive
  std::vector<double> first_control_;
  std::string camera_;
  std::vector<double> worth_;  // of each term, in the last step
};

}  // namespace weft
