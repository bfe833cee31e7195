#include "environments/dm_control/suite_models.h"

#include <algorithm>
#include <initializer_list>
#include <mujoco/mujoco.h>
#include <string>
#include <utility>

#include "base/check.h"

namespace weft {
namespace {

// An element by its name; throws Error(kConfig) when the file has none of that name.
mjsElement* Find(const mjSpec& spec, mjtObj kind, const std::string& name) {
  mjsElement* element = mjs_findElement(&spec, kind, name.c_str());
  if (element == nullptr) throw Error(ErrorCode::kConfig, "the model has no \"" + name + "\"");
  return element;
}

mjsBody* FindBody(const mjSpec& spec, const std::string& name) {
  return mjs_asBody(Find(spec, mjOBJ_BODY, name));
}

const mjsDefault* FindDefaults(const mjSpec& spec, const char* name) {
  const mjsDefault* defaults = mjs_findDefault(&spec, name);
  if (defaults == nullptr)
    throw Error(ErrorCode::kConfig, std::string("the model has no class \"") + name + "\"");
  return defaults;
}

template <class T>
T* Named(T* object, const std::string& name) {
  mjs_setName(object->element, name.c_str());
  return object;
}

template <size_t n>
void Assign(double (&to)[n], std::initializer_list<double> values) {
  std::copy(values.begin(), values.end(), to);
}

// With everything inside and everything that refers to it.
void Delete(mjSpec& spec, mjtObj kind, const std::string& name) {
  if (mjs_delete(&spec, Find(spec, kind, name)) != 0)
    throw Error(ErrorCode::kConfig, name + ": " + mjs_getError(&spec));
}

void DeleteWalls(mjSpec& spec) {
  for (const char* wall : {"wall_px", "wall_py", "wall_nx", "wall_ny"})
    Delete(spec, mjOBJ_GEOM, wall);
}

// Of quadruped.xml: without walls and ball.
void MakeFloor(mjSpec& spec, double size) {
  DeleteWalls(spec);
  Delete(spec, mjOBJ_BODY, "ball");
  Delete(spec, mjOBJ_SITE, "target");
  Assign(mjs_asGeom(Find(spec, mjOBJ_GEOM, "floor"))->size, {size, size, 0.5});
}

// A motor without limits, unless the model's defaults say so, on a joint.
void AddMotor(mjSpec& spec, const std::string& name, const std::string& joint) {
  mjsActuator* motor = Named(mjs_addActuator(&spec, mjs_getSpecDefault(&spec)), name);
  mjs_setToMotor(motor);
  motor->trntype = mjTRN_JOINT;
  mjs_setString(motor->target, joint.c_str());
}

}  // namespace

void MakePoles(mjSpec& spec, int poles) {
  const mjsDefault* defaults = FindDefaults(spec, "pole");
  mjsBody* parent = FindBody(spec, "pole_1");
  for (int i = 2; i <= poles; ++i) {
    const std::string number = std::to_string(i);
    parent = Named(mjs_addBody(parent, defaults), "pole_" + number);
    Assign(parent->pos, {0, 0, 1});
    Named(mjs_addJoint(parent, defaults), "hinge_" + number);
    Named(mjs_addGeom(parent, defaults), "pole_" + number);
  }
  mjs_asGeom(Find(spec, mjOBJ_GEOM, "floor"))->pos[2] = 1 - poles - 0.05;
}

void MakeLinks(mjSpec& spec, int links) {
  // Elements of the swimmer take the defaults of its head's childclass.
  const mjsDefault* defaults = FindDefaults(spec, "swimmer");
  mjsBody* parent = FindBody(spec, "head");
  const double limit = 360.0 / links;  // degrees, as in the file
  for (int i = 0; i + 1 < links; ++i) {
    const std::string number = std::to_string(i);
    parent = Named(mjs_addBody(parent, defaults), "segment_" + number);
    Assign(parent->pos, {0, 0.1, 0});
    Named(mjs_addGeom(parent, FindDefaults(spec, "visual")), "visual_" + number);
    Named(mjs_addGeom(parent, FindDefaults(spec, "inertial")), "inertial_" + number);
    Named(mjs_addSite(parent, defaults), "site_" + number);
    mjsJoint* joint = Named(mjs_addJoint(parent, defaults), "joint_" + number);
    Assign(joint->range, {-limit, limit});
    AddMotor(spec, "motor_" + number, "joint_" + number);
    for (const auto& [type, name] :
         {std::pair(mjSENS_VELOCIMETER, "velocimeter_"), std::pair(mjSENS_GYRO, "gyro_")}) {
      mjsSensor* sensor = Named(mjs_addSensor(&spec), name + number);
      sensor->type = type;
      sensor->objtype = mjOBJ_SITE;
      mjs_setString(sensor->objname, ("site_" + number).c_str());
    }
  }
}

void MakeMasses(mjSpec& spec, int masses, int driven) {
  const mjsDefault* defaults = mjs_getSpecDefault(&spec);
  mjsBody* parent = FindBody(spec, "world");
  for (int i = 0; i < masses; ++i) {
    const std::string number = std::to_string(i);
    parent = Named(mjs_addBody(parent, nullptr), "body_" + number);
    Assign(parent->pos, {0.25, 0, i == 0 ? 0.1 : 0});
    Named(mjs_addJoint(parent, defaults), "joint_" + number);
    Named(mjs_addGeom(parent, defaults), "geom_" + number);
    if (i < driven) AddMotor(spec, "motor_" + number, "joint_" + number);
  }
}

void KeepProps(mjSpec& spec, bool peg, bool insert) {
  for (const char* name : {"ball", "target_ball", "cup"}) {
    if (peg || (name == std::string("cup") && !insert)) Delete(spec, mjOBJ_BODY, name);
  }
  for (const char* name : {"peg", "target_peg", "slot"}) {
    if (!peg || (name == std::string("slot") && !insert)) Delete(spec, mjOBJ_BODY, name);
  }
}

void KeepBoxes(mjSpec& spec, int boxes) {
  for (int i = boxes; i < 4; ++i) Delete(spec, mjOBJ_BODY, "box" + std::to_string(i));
}

void MakeArena(mjSpec& spec) {
  Delete(spec, mjOBJ_GEOM, "terrain");
  for (int group = 0; group < 4; ++group) {
    for (int i = 0; i < 5; ++i)
      Delete(spec, mjOBJ_SENSOR, "rf_" + std::to_string(group) + std::to_string(i));
  }
}

void MakeField(mjSpec& spec, double size) {
  MakeArena(spec);
  MakeFloor(spec, size);
}

void MakeTerrain(mjSpec& spec) {
  MakeFloor(spec, 40);
}

void MakeDogField(mjSpec& spec, double size) {
  DeleteWalls(spec);
  for (const char* camera : {"ball", "head"}) Delete(spec, mjOBJ_CAMERA, camera);
  Delete(spec, mjOBJ_GEOM, "target");
  Delete(spec, mjOBJ_BODY, "ball");
  Assign(mjs_asGeom(Find(spec, mjOBJ_GEOM, "floor"))->size, {size, size, 0.1});
}

}  // namespace weft
