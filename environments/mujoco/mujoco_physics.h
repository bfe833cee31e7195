// One MuJoCo simulation as dm_control steps it (dm_control/mujoco/engine.py, dm_control 1.0.50):
// after a step all that depends on positions and velocities belongs to the new state, and what
// depends on forces (touch, force and accelerometer sensors) to the last physics step. Parts of the
// model can be this simulation's own, to be drawn anew in every episode.
//
// Elements go by the indices that Body, Geom, Site, Joint and Sensor find by name; they throw
// Error(kConfig) for a name that the model lacks. Rotations are 3 x 3, row-major.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "environments/mujoco/mujoco_model.h"

struct mjData_;

namespace weft {

class MujocoRenderers;
struct Picture;

enum class JointType { kFree, kBall, kSlide, kHinge };  // as MuJoCo numbers them

struct MujocoJoint {
  JointType type;
  bool limited;
  double low, high;            // of a limited joint, m or rad
  int64_t position, velocity;  // index of its first coordinate and velocity
};

class MujocoPhysics {
 public:
  MujocoPhysics(const std::string& xml_file, MujocoEdit edit);

  int64_t Body(const std::string& name) const;
  int64_t Geom(const std::string& name) const;
  int64_t Site(const std::string& name) const;
  int64_t Joint(const std::string& name) const;
  int64_t Sensor(const std::string& name) const;

  // For mujoco_elements.h and mujoco_quantity.h. The data stay where they are when this moves.
  const mjModel_& model() const { return *model_; }
  const mjData_& data() const { return *data_; }

  // Constants of the model.
  int64_t bodies() const;
  int64_t joints() const;
  MujocoJoint joint(int64_t index) const;
  double timestep() const;                        // s
  double gravity() const;                         // m/s^2, downwards
  double subtree_mass(int64_t body) const;        // kg
  std::span<const double> control_range() const;  // [nu, 2]: low, high; infinite without limits
  std::span<const double> geom_size(int64_t geom) const;  // [3], m
  std::span<const double> site_size(int64_t site) const;  // [3], m
  double terrain_size() const;  // m, from the middle to the sides of the first height field

  // Makes an array of the model this simulation's own, as part of its state: to be called while the
  // owner is made, in alphabetical order of MuJoCo's names, which is that of the recordings.
  std::span<double> OwnBodyPosition();    // [nbody, 3]
  std::span<double> OwnBodyQuaternion();  // [nbody, 4]
  std::span<double> OwnDofDamping();      // [nv]
  std::span<double> OwnGeomPosition();    // [ngeom, 3]
  std::span<double> OwnGeomSize();        // [ngeom, 3]
  std::span<double> OwnJointStiffness();  // [njnt]
  std::span<double> OwnSitePosition();    // [nsite, 3]
  std::span<double> OwnSiteSize();        // [nsite, 3]
  std::span<double> OwnWrapParameter();   // [nwrap]
  std::span<float> OwnTerrain();          // [nhfielddata], heights

  // The state of now.
  std::span<double> position();             // [nq]
  std::span<double> velocity();             // [nv]
  std::span<double> activation();           // [na]
  std::span<const double> control() const;  // [nu]
  int64_t contacts() const;

  // What MuJoCo derives from it.
  std::span<const double> body_position(int64_t body) const;        // [3], m
  std::span<const double> body_centre_of_mass(int64_t body) const;  // [3], m
  std::span<const double> body_quaternion(int64_t body) const;      // [4]
  std::span<const double> body_rotation(int64_t body) const;        // [9]
  std::span<const double> geom_position(int64_t geom) const;        // [3], m
  std::span<const double> geom_rotation(int64_t geom) const;        // [9]
  std::span<const double> site_position(int64_t site) const;        // [3], m
  std::span<const double> site_rotation(int64_t site) const;        // [9]
  std::span<const double> joint_anchor(int64_t joint) const;        // [3], m
  std::span<const double> sensor(int64_t sensor) const;             // its own numbers
  std::span<const double> sensors() const;                          // of all sensors

  // Clears all data to the model's first state, and computes what depends on it.
  void Reset();
  // Computes what depends on the state, as in a reset: without actuation.
  void Forward();
  // Finds the contacts of the positions of now, and leaves all else as it was computed before.
  void FindContacts();
  // control: [nu]. derive: false for a caller that reads positions, velocities and controls alone;
  // it may save the last computation.
  void Step(std::span<const double> control, int64_t steps, bool derive = true);
  void ClearTime();
  // Gives the quaternions among the positions unit length.
  void NormaliseQuaternions();
  // What MuJoCo warned of since the last Reset or Set..State when it met a state or acceleration
  // that is not finite, or huge, and began anew from the first state; "" when all went well.
  std::string Divergence() const;

  // The state of now. camera: as in mujoco_renderer.h; "": the model's first one, or the free one
  // where it has none.
  void Render(const std::string& camera, Picture& picture) const;

  // MuJoCo's integration state (time, positions, velocities, activations, warm start, control,
  // ...), then the arrays that are this simulation's own.
  void GetState(std::vector<double>& state) const;
  // Takes over a state as that of a reset, or of a step: what the next step depends on. Throws
  // Error(kCorrupt) for a state of another size.
  void SetResetState(std::span<const double> state);
  void SetStepState(std::span<const double> state);

 private:
  struct Free {
    void operator()(mjModel_* model) const;
    void operator()(mjData_* data) const;
  };

  std::span<double> Own(double*& array, int64_t size);
  int64_t Find(int kind, const char* what, const std::string& name) const;
  void SetState(std::span<const double> state);

  // A copy of the shared model that shares its arrays, but for those in own_ and
  // terrain_.
  std::unique_ptr<mjModel_, Free> model_;
  std::vector<std::vector<double>> own_;
  std::vector<float> terrain_;  // after those
  std::unique_ptr<mjData_, Free> data_;
  std::vector<double> control_range_;
  std::shared_ptr<MujocoRenderers> renderers_;
};

}  // namespace weft
