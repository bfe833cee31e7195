#include "environments/mujoco/mujoco_simulation.h"

#include <algorithm>
#include <mujoco/mujoco.h>
#include <vector>

#include "base/check.h"
#include "base/scalar.h"
#include "environments/mujoco/mujoco_guard.h"
#include "environments/mujoco/mujoco_model.h"
#include "environments/mujoco/mujoco_renderer.h"

namespace weft {
namespace {

std::span<const double> View(const mjtNum* values, mjtSize count) {
  return {values, static_cast<size_t>(count)};
}

}  // namespace

void MujocoSimulation::FreeData::operator()(mjData_* data) const {
  mj_deleteData(data);
}

MujocoSimulation::MujocoSimulation(const std::string& xml_file)
    : model_(LoadMujocoModel(xml_file)), renderers_(MujocoRenderers::Of(model_)) {
  GuardMujoco([&] { data_.reset(mj_makeData(model_)); });
  WEFT_CHECK(data_ != nullptr) << "MuJoCo has no memory for " << xml_file;
}

int64_t MujocoSimulation::nq() const {
  return model_->nq;
}
int64_t MujocoSimulation::nv() const {
  return model_->nv;
}
int64_t MujocoSimulation::nu() const {
  return model_->nu;
}
double MujocoSimulation::timestep() const {
  return model_->opt.timestep;
}
std::span<const double> MujocoSimulation::control_range() const {
  return View(model_->actuator_ctrlrange, 2 * model_->nu);
}
std::span<const double> MujocoSimulation::initial_position() const {
  return View(model_->qpos0, model_->nq);
}
std::span<const double> MujocoSimulation::body_mass() const {
  return View(model_->body_mass, model_->nbody);
}
int64_t MujocoSimulation::sites() const {
  return model_->nsite;
}

int64_t MujocoSimulation::Body(const std::string& name) const {
  if (const int body = mj_name2id(model_, mjOBJ_BODY, name.c_str()); body >= 0) return body;
  int64_t number = 0;
  if (ParseNumber(name, number).empty() && number >= 0 && number < model_->nbody) return number;
  throw Error(ErrorCode::kConfig, "the model has no body \"" + name + "\": its " +
                                      std::to_string(model_->nbody) +
                                      " bodies go by their names and by numbers from 0");
}

std::span<const double> MujocoSimulation::position() const {
  return View(data_->qpos, model_->nq);
}
std::span<const double> MujocoSimulation::velocity() const {
  return View(data_->qvel, model_->nv);
}
std::span<const double> MujocoSimulation::control() const {
  return View(data_->ctrl, model_->nu);
}
std::span<const double> MujocoSimulation::body_position(int64_t body) const {
  return View(data_->xpos + 3 * body, 3);
}
std::span<const double> MujocoSimulation::body_centre_of_mass() const {
  return View(data_->xipos, 3 * model_->nbody);
}
std::span<const double> MujocoSimulation::site_position(int64_t site) const {
  return View(data_->site_xpos + 3 * site, 3);
}
std::span<const double> MujocoSimulation::body_inertia() const {
  return View(data_->cinert, 10 * model_->nbody);
}
std::span<const double> MujocoSimulation::body_velocity() const {
  return View(data_->cvel, 6 * model_->nbody);
}
std::span<const double> MujocoSimulation::actuator_force() const {
  return View(data_->qfrc_actuator, model_->nv);
}
std::span<const double> MujocoSimulation::constraint_force() const {
  return View(data_->qfrc_constraint, model_->nv);
}
std::span<const double> MujocoSimulation::tendon_length() const {
  return View(data_->ten_length, model_->ntendon);
}
std::span<const double> MujocoSimulation::tendon_velocity() const {
  return View(data_->ten_velocity, model_->ntendon);
}
std::span<const double> MujocoSimulation::contact_force() const {
  return View(data_->cfrc_ext, 6 * model_->nbody);
}

void MujocoSimulation::Reset(std::span<const double> position, std::span<const double> velocity) {
  WEFT_CHECK(std::ssize(position) == nq() && std::ssize(velocity) == nv())
      << "a state of " << position.size() << " + " << velocity.size() << " numbers for a model of "
      << nq() << " + " << nv();
  GuardMujoco([&] { mj_resetData(model_, data_.get()); });
  std::copy(position.begin(), position.end(), data_->qpos);
  std::copy(velocity.begin(), velocity.end(), data_->qvel);
  GuardMujoco([&] { mj_forward(model_, data_.get()); });
}

void MujocoSimulation::Step(std::span<const double> control, int64_t steps) {
  WEFT_CHECK(std::ssize(control) == nu())
      << control.size() << " controls for " << nu() << " actuators";
  std::copy(control.begin(), control.end(), data_->ctrl);
  GuardMujoco([&] {
    for (int64_t i = 0; i < steps; ++i) mj_step(model_, data_.get());
  });
}

void MujocoSimulation::ComputeContactForces() {
  GuardMujoco([&] { mj_rnePostConstraint(model_, data_.get()); });
}

FreeCamera MujocoSimulation::DistantCamera() const {
  std::unique_ptr<mjData, FreeData> initial;
  GuardMujoco([&] { initial.reset(mj_makeData(model_)); });
  WEFT_CHECK(initial != nullptr) << "MuJoCo has no memory";
  mj_kinematics(model_, initial.get());
  FreeCamera camera{.distance = model_->stat.extent};
  std::vector<double> values(static_cast<size_t>(model_->ngeom));
  for (size_t axis = 0; axis < 3 && !values.empty(); ++axis) {
    for (size_t geom = 0; geom < values.size(); ++geom)
      values[geom] = initial->geom_xpos[3 * geom + axis];
    std::ranges::sort(values);
    const size_t middle = values.size() / 2;
    camera.look_at[axis] =
        values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  }
  return camera;
}

void MujocoSimulation::Render(const FreeCamera& free, const std::string& camera,
                              Picture& picture) const {
  const bool tracks = camera.empty() && mj_name2id(model_, mjOBJ_CAMERA, "track") >= 0;
  renderers_->Render(*model_, *data_, free, tracks ? "track" : camera, picture);
}

void MujocoSimulation::Save(Writer& out) const {
  std::vector<double> state(static_cast<size_t>(mj_stateSize(model_, mjSTATE_INTEGRATION)));
  mj_getState(model_, data_.get(), state.data(), mjSTATE_INTEGRATION);
  out.Write(std::span<const double>(state));
}

void MujocoSimulation::Load(Reader& in) {
  const std::vector<double> state = in.ReadVector<double>();
  if (std::ssize(state) != mj_stateSize(model_, mjSTATE_INTEGRATION)) {
    throw Error(ErrorCode::kCorrupt, "the saved state is that of another MuJoCo model");
  }
  GuardMujoco([&] {
    mj_resetData(model_, data_.get());
    mj_setState(model_, data_.get(), state.data(), mjSTATE_INTEGRATION);
  });
}

}  // namespace weft
