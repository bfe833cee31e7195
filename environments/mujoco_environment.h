// What Gymnasium's MuJoCo tasks share (gymnasium/envs/mujoco/mujoco_env.py, version 5 of the
// tasks): a model file, some simulation steps per action, reset noise, the state as numbers. A task
// derives a final class, fills the spec's remaining parts and writes Step and Observe. Keyword
// arguments are Gymnasium's less those of rendering.
//
// Rewards follow the precision of the action, as NumPy does: the cost of a float32 action is
// computed in float32.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "environments/environment.h"
#include "environments/mujoco_simulation.h"

namespace weft {

struct MujocoArguments : Config {
  std::string xml_file;
  int64_t frame_skip = 1;
  double reset_noise_scale = 0;

  void Fields(FieldVisitor& v) override;
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
  void Save(Writer& out) const override { simulation_.Save(out); }
  void Load(Reader& in) override { simulation_.Load(in); }

 protected:
  enum class VelocityNoise { kUniform, kNormal };

  // spec gets the action space from the model; its observation leaf is set by ObserveReals.
  MujocoEnvironment(const MujocoArguments& arguments, VelocityNoise velocity_noise,
                    EnvironmentSpec spec);

  // Declares the observation: one leaf of `size` unbounded f64.
  void ObserveReals(int64_t size);
  // Holds the action for frame_skip steps.
  void Simulate(ActionRow action);
  // weight * sum of squares of the action, in its precision.
  double ControlCost(ActionRow action, double weight) const;
  double dt() const {
    return simulation_.timestep() * static_cast<double>(frame_skip_);
  }  // s per action

  MujocoSimulation simulation_;
  std::vector<double> info_;  // of the last step, as spec().info names them

 private:
  int64_t frame_skip_;
  double reset_noise_scale_;
  VelocityNoise velocity_noise_;
  std::vector<double> control_, state_;  // scratch
  std::unique_ptr<EnvironmentSpec> spec_;
};

}  // namespace weft
