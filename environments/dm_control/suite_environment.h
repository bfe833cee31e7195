// What the tasks of dm_control's suite share (dm_control/suite/base.py and
// dm_control/rl/control.py, dm_control 1.0.50; Tassa et al. 2018, "DeepMind Control Suite"): a
// model, a control step of some physics steps, episodes of a fixed length that end in a truncation,
// and rewards in [0, 1]. The entries of an observation are leaves of the same names in the same
// order.
//
// A domain is one file: a final class that declares its observation and writes Draw, Observe and
// Reward, and a table of its tasks. The physical state is MuJoCo's integration state followed by
// what the task draws in the model (mujoco_physics.h).
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "environments/dm_control/tolerance.h"
#include "environments/environment.h"
#include "environments/mujoco/mujoco_physics.h"
#include "environments/mujoco/vectors.h"

namespace weft {

struct SuiteTask {
  const char* id;
  const char* xml_file;         // in the folder dm_control/suite of the wheel
  double control_timestep = 0;  // s; 0: that of the physics
  MujocoEdit edit = nullptr;
  int64_t time_limit = 1000;
};

// Tasks of the suite have no arguments; `table` is a row of their domain's table.
template <class Table>
struct SuiteArguments : NoArguments {
  explicit SuiteArguments(const Table* row) : table(row) {}
  const Table* table;
};

class SuiteEnvironment : public Environment {
 public:
  static constexpr double kStepNanoseconds = 100000;

  const EnvironmentSpec& spec() const final { return *spec_; }
  void Reset(Rng& rng, StepRow out) final;
  void Step(ActionRow action, Rng& rng, StepRow out) final;
  void GetState(std::vector<double>& state) const final { physics_.GetState(state); }
  void SetState(std::span<const double> state) final { physics_.SetResetState(state); }
  void Render(Canvas& canvas) const final;
  void Save(Writer& out) const final;
  void Load(Reader& in) final;

 protected:
  explicit SuiteEnvironment(const SuiteTask& task);

  // Declares the observation: unbounded f64 leaves.
  struct Entry {
    const char* name;
    Shape shape;
  };
  void Declare(const std::vector<Entry>& entries);

  // Writes the state that an episode begins in, over the model's first one.
  virtual void Draw(Rng& rng) = 0;
  virtual double Reward() = 0;
  // Whether the task itself ends here.
  virtual bool Terminated() { return false; }

  // Draws limited hinges and slides uniformly in their range, other hinges in [-pi, pi], and the
  // rotations of ball and free joints.
  void DrawJoints(Rng& rng);
  // Draws by `draw` until nothing touches; throws Error(kInternal) after a thousand times.
  template <class Function>
  void DrawUntilFree(const Function& draw) {
    for (int attempt = 0; attempt < 1000; ++attempt) {
      draw();
      physics_.FindContacts();
      if (physics_.contacts() == 0) return;
    }
    FailToDraw();
  }
  // Mean over the controls of an indicator of 0 that falls to 0 at 1 and -1.
  double SmallControl() const;

  MujocoPhysics physics_;

 private:
  [[noreturn]] void FailToDraw() const;

  int64_t steps_;
  std::vector<double> control_;  // scratch
  std::unique_ptr<EnvironmentSpec> spec_;
};

// Fills values with a random unit vector, uniform over the sphere.
void DrawDirection(Rng& rng, std::span<double> values);

}  // namespace weft
