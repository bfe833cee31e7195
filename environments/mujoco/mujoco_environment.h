// What Gymnasium's MuJoCo tasks share (gymnasium/envs/mujoco/mujoco_env.py, Gymnasium 1.4): a model
// file, some simulation steps per action, reset noise, the state as numbers. A task derives a final
// class, declares its observation and info, and writes Step and Observe. Keyword arguments are
// Gymnasium's less those of rendering. Versions 4 and 5 of a task are rows of one table; version 4
// also takes those keyword arguments of version 5 that do not contradict it.
//
// Rewards follow the precision of the action, as NumPy does: the cost of a float32 action is
// computed in float32.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "environments/environment.h"
#include "environments/mujoco/mujoco_simulation.h"
#include "environments/mujoco/vectors.h"

namespace weft {

// A version of a task, and the defaults of its arguments.
struct MujocoTask {
  const char* id;
  const char* xml_file;
  int64_t frame_skip;
  // Half the width of the noise that a reset adds to every coordinate and, unless they are normal
  // with this deviation, to every velocity; 0: the task draws its first states in its own way.
  double reset_noise_scale = 0;
  bool normal_velocity = false;
  double reward_threshold = 0;
  int64_t time_limit = 1000;
  int version = 5;
  // How far Gymnasium's free camera stands, for models without one of their own, m; 0: as far as
  // the model extends.
  double camera_distance = 0;
};

struct MujocoArguments : Config {
  explicit MujocoArguments(const MujocoTask& table);

  void Fields(FieldVisitor& v) override;

  MujocoTask task;
  std::string xml_file;
  int64_t frame_skip;
  double reset_noise_scale;
};

// [low, high], either of which may be infinite.
void RangeField(FieldVisitor& v, const char* key, std::vector<double>& range, const char* help);
// Throws ConfigProblem unless the range has two numbers.
void CheckRange(const char* key, const std::vector<double>& range);

// Arguments of the robots that can fall.
struct HealthArguments {
  double reward = 1;
  std::vector<double> z_range;  // of the torso's height, m
  bool terminate = true;

  void Fields(FieldVisitor& v);
  // What a step earns for staying healthy; in version 4 the step that ends the episode does, too.
  double Reward(bool healthy, int version) const {
    return healthy || (version == 4 && terminate) ? reward : 0;
  }
};

class MujocoEnvironment : public Environment {
 public:
  static constexpr double kStepNanoseconds = 50000;

  const EnvironmentSpec& spec() const final { return *spec_; }
  void Reset(Rng& rng, StepRow out) final;
  // Positions, then velocities.
  void GetState(std::vector<double>& state) const final;
  void SetState(std::span<const double> state) final;
  void Info(std::span<double> values) const final;
  void Render(Canvas& canvas) const final;
  void Save(Writer& out) const override { simulation_.Save(out); }
  void Load(Reader& in) override { simulation_.Load(in); }

 protected:
  // Throws Error(kConfig) for a model with fewer coordinates or velocities than the task reads.
  MujocoEnvironment(const MujocoArguments& arguments, int64_t least_nq, int64_t least_nv);

  // Declares the observation, one leaf of `size` unbounded f64, and the names of info_, where
  // element 1 of Gymnasium's vector NAME is NAME[1]. It begins with the positions less the first
  // `hidden` ones, then the velocities; or, for hidden < 0, with something else.
  void Declare(int64_t size, std::vector<std::string> info, int64_t hidden);
  // Writes the state that an episode begins in; both spans hold the model's initial state.
  virtual void DrawState(Rng& rng, std::span<double> position, std::span<double> velocity);
  // Called when the simulation has taken over a state.
  virtual void Settle() {}

  // Holds the action for frame_skip steps.
  void Simulate(ActionRow action);
  // weight * sum of squares of the action, in its precision.
  double ControlCost(ActionRow action, double weight) const;
  double dt() const {
    return simulation_.timestep() * static_cast<double>(frame_skip_);
  }  // s per action
  int version() const { return version_; }

  MujocoSimulation simulation_;
  std::vector<double> info_;  // of the last step, as Declare named them

 private:
  int64_t frame_skip_;
  double reset_noise_scale_;
  bool normal_velocity_;
  int version_;
  double camera_distance_;
  std::vector<double> control_, state_;  // scratch
  std::unique_ptr<EnvironmentSpec> spec_;
};

double SumOfSquares(std::span<const double> values);

}  // namespace weft
