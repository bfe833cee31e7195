#include "environments/mujoco/mujoco_physics.h"

#include <algorithm>
#include <limits>
#include <mujoco/mujoco.h>

#include "base/check.h"
#include "environments/mujoco/mujoco_guard.h"
#include "environments/mujoco/mujoco_renderer.h"

namespace weft {
namespace {

std::span<const double> View(const mjtNum* values, mjtSize count) {
  return {values, static_cast<size_t>(count)};
}
std::span<const double> Part(const mjtNum* values, int64_t index, int64_t size) {
  return View(values + index * size, size);
}

}  // namespace

// Its arrays are not its own.
void MujocoPhysics::Free::operator()(mjModel_* model) const {
  delete model;
}
void MujocoPhysics::Free::operator()(mjData_* data) const {
  mj_deleteData(data);
}

MujocoPhysics::MujocoPhysics(const std::string& xml_file, MujocoEdit edit)
    : model_(new mjModel(*LoadMujocoModel(xml_file, edit))),
      renderers_(MujocoRenderers::Of(LoadMujocoModel(xml_file, edit))) {
  GuardMujoco([&] { data_.reset(mj_makeData(model_.get())); });
  WEFT_CHECK(data_ != nullptr) << "MuJoCo has no memory for " << xml_file;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < model_->nu; ++i) {
    const auto range = Part(model_->actuator_ctrlrange, i, 2);
    const bool limited = model_->actuator_ctrllimited[i] != 0;
    control_range_.push_back(limited ? range[0] : -kInfinity);
    control_range_.push_back(limited ? range[1] : kInfinity);
  }
}

int64_t MujocoPhysics::Find(int kind, const char* what, const std::string& name) const {
  const int index = mj_name2id(model_.get(), kind, name.c_str());
  if (index >= 0) return index;
  throw Error(ErrorCode::kConfig, std::string("the model has no ") + what + " \"" + name + "\"");
}
int64_t MujocoPhysics::Body(const std::string& name) const {
  return Find(mjOBJ_BODY, "body", name);
}
int64_t MujocoPhysics::Geom(const std::string& name) const {
  return Find(mjOBJ_GEOM, "geom", name);
}
int64_t MujocoPhysics::Site(const std::string& name) const {
  return Find(mjOBJ_SITE, "site", name);
}
int64_t MujocoPhysics::Joint(const std::string& name) const {
  return Find(mjOBJ_JOINT, "joint", name);
}
int64_t MujocoPhysics::Sensor(const std::string& name) const {
  return Find(mjOBJ_SENSOR, "sensor", name);
}

int64_t MujocoPhysics::bodies() const {
  return model_->nbody;
}
int64_t MujocoPhysics::joints() const {
  return model_->njnt;
}
MujocoJoint MujocoPhysics::joint(int64_t index) const {
  return {.type = static_cast<JointType>(model_->jnt_type[index]),
          .limited = model_->jnt_limited[index] != 0,
          .low = model_->jnt_range[2 * index],
          .high = model_->jnt_range[2 * index + 1],
          .position = model_->jnt_qposadr[index],
          .velocity = model_->jnt_dofadr[index]};
}
double MujocoPhysics::timestep() const {
  return model_->opt.timestep;
}
double MujocoPhysics::gravity() const {
  return -model_->opt.gravity[2];
}
double MujocoPhysics::subtree_mass(int64_t body) const {
  return model_->body_subtreemass[body];
}
std::span<const double> MujocoPhysics::control_range() const {
  return control_range_;
}
std::span<const double> MujocoPhysics::geom_size(int64_t geom) const {
  return Part(model_->geom_size, geom, 3);
}
std::span<const double> MujocoPhysics::site_size(int64_t site) const {
  return Part(model_->site_size, site, 3);
}

double MujocoPhysics::terrain_size() const {
  return model_->hfield_size[0];
}

std::span<double> MujocoPhysics::Own(double*& array, int64_t size) {
  own_.emplace_back(array, array + size);
  array = own_.back().data();
  return own_.back();
}
std::span<double> MujocoPhysics::OwnBodyPosition() {
  return Own(model_->body_pos, 3 * model_->nbody);
}
std::span<double> MujocoPhysics::OwnBodyQuaternion() {
  return Own(model_->body_quat, 4 * model_->nbody);
}
std::span<double> MujocoPhysics::OwnDofDamping() {
  return Own(model_->dof_damping, model_->nv);
}
std::span<double> MujocoPhysics::OwnGeomPosition() {
  return Own(model_->geom_pos, 3 * model_->ngeom);
}
std::span<double> MujocoPhysics::OwnGeomSize() {
  return Own(model_->geom_size, 3 * model_->ngeom);
}
std::span<double> MujocoPhysics::OwnJointStiffness() {
  return Own(model_->jnt_stiffness, model_->njnt);
}
std::span<double> MujocoPhysics::OwnSitePosition() {
  return Own(model_->site_pos, 3 * model_->nsite);
}
std::span<double> MujocoPhysics::OwnSiteSize() {
  return Own(model_->site_size, 3 * model_->nsite);
}
std::span<double> MujocoPhysics::OwnWrapParameter() {
  return Own(model_->wrap_prm, model_->nwrap);
}

std::span<float> MujocoPhysics::OwnTerrain() {
  terrain_.assign(model_->hfield_data, model_->hfield_data + model_->nhfielddata);
  model_->hfield_data = terrain_.data();
  return terrain_;
}

std::span<double> MujocoPhysics::position() {
  return {data_->qpos, static_cast<size_t>(model_->nq)};
}
std::span<double> MujocoPhysics::velocity() {
  return {data_->qvel, static_cast<size_t>(model_->nv)};
}
std::span<double> MujocoPhysics::activation() {
  return {data_->act, static_cast<size_t>(model_->na)};
}
std::span<const double> MujocoPhysics::control() const {
  return View(data_->ctrl, model_->nu);
}
int64_t MujocoPhysics::contacts() const {
  return data_->ncon;
}

std::span<const double> MujocoPhysics::body_position(int64_t body) const {
  return Part(data_->xpos, body, 3);
}
std::span<const double> MujocoPhysics::body_centre_of_mass(int64_t body) const {
  return Part(data_->xipos, body, 3);
}
std::span<const double> MujocoPhysics::body_quaternion(int64_t body) const {
  return Part(data_->xquat, body, 4);
}
std::span<const double> MujocoPhysics::body_rotation(int64_t body) const {
  return Part(data_->xmat, body, 9);
}
std::span<const double> MujocoPhysics::geom_position(int64_t geom) const {
  return Part(data_->geom_xpos, geom, 3);
}
std::span<const double> MujocoPhysics::geom_rotation(int64_t geom) const {
  return Part(data_->geom_xmat, geom, 9);
}
std::span<const double> MujocoPhysics::site_position(int64_t site) const {
  return Part(data_->site_xpos, site, 3);
}
std::span<const double> MujocoPhysics::site_rotation(int64_t site) const {
  return Part(data_->site_xmat, site, 9);
}
std::span<const double> MujocoPhysics::joint_anchor(int64_t joint) const {
  return Part(data_->xanchor, joint, 3);
}
std::span<const double> MujocoPhysics::sensor(int64_t sensor) const {
  return View(data_->sensordata + model_->sensor_adr[sensor], model_->sensor_dim[sensor]);
}
std::span<const double> MujocoPhysics::sensors() const {
  return View(data_->sensordata, model_->nsensordata);
}

void MujocoPhysics::Reset() {
  GuardMujoco([&] { mj_resetData(model_.get(), data_.get()); });
  Forward();
}

void MujocoPhysics::Forward() {
  struct WithoutActuation {
    explicit WithoutActuation(mjModel& model) : of(model), flags(model.opt.disableflags) {
      of.opt.disableflags |= mjDSBL_ACTUATION;
    }
    ~WithoutActuation() { of.opt.disableflags = flags; }
    mjModel& of;
    const int flags;
  };
  const WithoutActuation scope(*model_);
  GuardMujoco([&] { mj_forward(model_.get(), data_.get()); });
}

void MujocoPhysics::FindContacts() {
  GuardMujoco([&] {
    mj_kinematics(model_.get(), data_.get());
    mj_collision(model_.get(), data_.get());
  });
}

void MujocoPhysics::Step(std::span<const double> control, int64_t steps, bool derive) {
  std::copy(control.begin(), control.end(), data_->ctrl);
  // mj_step1 has been done for this state; only the Runge-Kutta integrator does it again.
  const bool begun = model_->opt.integrator != mjINT_RK4;
  GuardMujoco([&] {
    if (begun) mj_step2(model_.get(), data_.get());
    for (int64_t i = begun; i < steps; ++i) mj_step(model_.get(), data_.get());
    if (begun || derive) mj_step1(model_.get(), data_.get());
  });
}

void MujocoPhysics::ClearTime() {
  data_->time = 0;
}

void MujocoPhysics::Render(const std::string& camera, Picture& picture) const {
  const bool first = camera.empty() && model_->ncam > 0;
  renderers_->Render(*model_, *data_, DefaultFreeCamera(*model_), first ? "0" : camera, picture);
}

void MujocoPhysics::NormaliseQuaternions() {
  mj_normalizeQuat(model_.get(), data_->qpos);
}

std::string MujocoPhysics::Divergence() const {
  const auto& warning = data_->warning;
  const auto met = [&](mjtWarning kind) { return warning[kind].number > 0; };
  if (!met(mjWARN_BADQPOS) && !met(mjWARN_BADQVEL) && !met(mjWARN_BADQACC) && !met(mjWARN_BADCTRL))
    return "";
  if (met(mjWARN_BADCTRL)) return "a control is not finite, or huge";
  // The joint of a coordinate, else of a velocity.
  const mjtWarning kind = met(mjWARN_BADQPOS)   ? mjWARN_BADQPOS
                          : met(mjWARN_BADQVEL) ? mjWARN_BADQVEL
                                                : mjWARN_BADQACC;
  const int* addresses = kind == mjWARN_BADQPOS ? model_->jnt_qposadr : model_->jnt_dofadr;
  const auto joint =
      std::upper_bound(addresses, addresses + model_->njnt, warning[kind].lastinfo) - addresses - 1;
  const char* name = mj_id2name(model_.get(), mjOBJ_JOINT, static_cast<int>(joint));
  return std::string("the ") +
         (kind == mjWARN_BADQPOS   ? "position"
          : kind == mjWARN_BADQVEL ? "velocity"
                                   : "acceleration") +
         " of joint " + (name != nullptr ? name : "number " + std::to_string(joint)) +
         " is not finite, or huge";
}

void MujocoPhysics::GetState(std::vector<double>& state) const {
  state.resize(static_cast<size_t>(mj_stateSize(model_.get(), mjSTATE_INTEGRATION)));
  mj_getState(model_.get(), data_.get(), state.data(), mjSTATE_INTEGRATION);
  for (const auto& array : own_) state.insert(state.end(), array.begin(), array.end());
  state.insert(state.end(), terrain_.begin(), terrain_.end());
}

void MujocoPhysics::SetState(std::span<const double> state) {
  const auto integration = static_cast<size_t>(mj_stateSize(model_.get(), mjSTATE_INTEGRATION));
  size_t size = integration + terrain_.size();
  for (const auto& array : own_) size += array.size();
  if (state.size() != size) {
    throw Error(ErrorCode::kCorrupt, "a state of " + std::to_string(state.size()) +
                                         " numbers for a model of " + std::to_string(size));
  }
  auto from = state.begin() + static_cast<std::ptrdiff_t>(integration);
  for (auto& array : own_) {
    const auto end = from + std::ssize(array);
    std::copy(from, end, array.begin());
    from = end;
  }
  std::transform(from, state.end(), terrain_.begin(),
                 [](double height) { return static_cast<float>(height); });
  GuardMujoco([&] {
    mj_resetData(model_.get(), data_.get());
    mj_setState(model_.get(), data_.get(), state.data(), mjSTATE_INTEGRATION);
  });
}

void MujocoPhysics::SetResetState(std::span<const double> state) {
  SetState(state);
  Forward();
}

void MujocoPhysics::SetStepState(std::span<const double> state) {
  SetState(state);
  GuardMujoco([&] { mj_step1(model_.get(), data_.get()); });
}

}  // namespace weft
