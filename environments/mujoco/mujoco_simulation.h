// One MuJoCo simulation: a model, which all simulations of a file share, and its own data. Hides
// MuJoCo's C API; errors and warnings as in mujoco_model.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/archive.h"

struct mjModel_;
struct mjData_;

namespace weft {

class MujocoRenderers;
struct FreeCamera;
struct Picture;

class MujocoSimulation {
 public:
  // xml_file as in asset.h. The model is loaded on first use and lives as long as the process.
  // Throws Error(kUnavailable) when there is no such file and Error(kConfig) when MuJoCo refuses
  // it.
  explicit MujocoSimulation(const std::string& xml_file);

  const mjModel_& model() const { return *model_; }

  // Sizes and constants of the model.
  int64_t nq() const;                                // coordinates of position
  int64_t nv() const;                                // of velocity
  int64_t nu() const;                                // controls
  double timestep() const;                           // s
  std::span<const double> control_range() const;     // [nu, 2]: low, high
  std::span<const double> initial_position() const;  // [nq]; initial velocities are 0
  std::span<const double> body_mass() const;         // [nbody], kg
  int64_t sites() const;
  // The index of a body by its name or, where none has that name, by its number; throws
  // Error(kConfig).
  int64_t Body(const std::string& name) const;

  // The state of now.
  std::span<const double> position() const;  // [nq]
  std::span<const double> velocity() const;  // [nv]
  std::span<const double> control() const;   // [nu], not clamped to its range

  // What MuJoCo derives from the state, as its last computation left it: after Reset it belongs to
  // the state, after Step to the last stage of the integrator, which is not quite the new state.
  std::span<const double> body_position(int64_t body) const;  // [3], m
  std::span<const double> body_centre_of_mass() const;        // [nbody, 3], m
  std::span<const double> site_position(int64_t site) const;  // [3], m
  std::span<const double> body_inertia() const;      // [nbody, 10], about the centre of mass
  std::span<const double> body_velocity() const;     // [nbody, 6], rotation and translation
  std::span<const double> actuator_force() const;    // [nv]
  std::span<const double> constraint_force() const;  // [nv]
  std::span<const double> tendon_length() const;     // [ntendon], m
  std::span<const double> tendon_velocity() const;   // [ntendon], m/s
  // [nbody, 6], torque and force of contacts; 0 from Reset to ComputeContactForces.
  std::span<const double> contact_force() const;

  // Clears all data (warm starts, controls, contact forces), takes over the state and computes what
  // depends on it.
  void Reset(std::span<const double> position, std::span<const double> velocity);
  // Applies the control [nu] for `steps` steps.
  void Step(std::span<const double> control, int64_t steps);
  void ComputeContactForces();

  // Where Gymnasium's free camera stands when it is told nothing: it looks at the middle of the
  // shapes of the initial position from as far as the model extends.
  FreeCamera DistantCamera() const;
  // The state as the last step or reset left it. camera: as in mujoco_renderer.h; "": the one named
  // track, as in Gymnasium, or the free one where there is none.
  void Render(const FreeCamera& free, const std::string& camera, Picture& picture) const;

  // Exact: continues bit for bit, warm start of the solver included.
  void Save(Writer& out) const;
  void Load(Reader& in);

 private:
  struct FreeData {
    void operator()(mjData_* data) const;
  };

  const mjModel_* model_;
  std::unique_ptr<mjData_, FreeData> data_;
  std::shared_ptr<MujocoRenderers> renderers_;
};

}  // namespace weft
