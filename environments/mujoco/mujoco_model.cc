#include "environments/mujoco/mujoco_model.h"

#include <map>
#include <memory>
#include <mujoco/mujoco.h>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "environments/asset.h"
#include "environments/mujoco/mujoco_compiler.h"
#include "environments/mujoco/mujoco_guard.h"

namespace weft {
namespace {

const mjModel* CompileHere(const std::string& path, MujocoEdit edit) {
  // The standard files warn of attributes that a later MuJoCo will drop: not worth a word.
  const MujocoWarnings warnings;
  char text[1024] = "";
  const std::unique_ptr<mjSpec, decltype(&mj_deleteSpec)> spec(
      mj_parseXML(path.c_str(), nullptr, text, sizeof(text)), mj_deleteSpec);
  if (spec == nullptr) throw Error(ErrorCode::kConfig, path + ": " + text);
  if (edit != nullptr) edit(*spec);
  const mjModel* model = mj_compile(spec.get(), nullptr);
  if (model == nullptr) throw Error(ErrorCode::kConfig, path + ": " + mjs_getError(spec.get()));
  return model;
}

const mjModel* CompileElsewhere(const std::string& path) {
  const MjcfFiles files = InspectMjcf(path);
  const CompiledModel compiled = CompileInChild(files, BoundsOf(files));
  if (!compiled.warnings.empty()) LogWarn(path + ": " + compiled.warnings);
  const mjModel* model = nullptr;
  GuardMujoco([&] {
    model = mj_loadModelBuffer(compiled.bytes.data(), static_cast<mjtSize>(compiled.bytes.size()));
  });
  if (model == nullptr) throw Error(ErrorCode::kConfig, path + ": MuJoCo cannot load it again");
  return model;
}

}  // namespace

const mjModel* LoadMujocoModel(const std::string& xml_file, MujocoEdit edit) {
  static auto& mutex = *new std::mutex;
  static auto& models = *new std::map<std::pair<std::string, MujocoEdit>, const mjModel*>;
  const std::string path = AssetPath(xml_file);
  const std::lock_guard lock(mutex);
  const mjModel*& model = models[{path, edit}];
  if (model != nullptr) return model;
  HandleMujocoMessages();
  const bool standard = IsStandardAsset(xml_file);
  WEFT_CHECK(standard || edit == nullptr) << "only standard models are edited, not " << path;
  return model = standard ? CompileHere(path, edit) : CompileElsewhere(path);
}

}  // namespace weft
