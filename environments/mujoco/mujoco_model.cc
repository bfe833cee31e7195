#include "environments/mujoco/mujoco_model.h"

#include <atomic>
#include <map>
#include <memory>
#include <mujoco/mujoco.h>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "environments/asset.h"

namespace weft {
namespace {

constexpr int kMaxWarnings = 10;  // shown in a process: a diverging simulation warns at every step
std::atomic<int> warnings{0};
thread_local bool loading = false;  // the warnings of a model file are collected, not logged
thread_local std::string load_warnings;

// MuJoCo's own handler would write MUJOCO_LOG.TXT into the working folder and end the process after
// an error. An exception may pass through: libmujoco is C with unwind tables, and the simulation it
// leaves is not used again.
void HandleMessage(const mjLogMessage* message) {
  if (message->level == mjLOG_ERROR) {
    throw Error(ErrorCode::kInternal, std::string("MuJoCo: ") + message->subject);
  }
  if (message->level != mjLOG_WARNING) return;
  if (loading) {
    load_warnings += std::string(message->subject) + "; ";
  } else if (const int count = ++warnings; count <= kMaxWarnings) {
    LogWarn("MuJoCo: " + std::string(message->subject) +
            (count == kMaxWarnings ? " (further warnings of MuJoCo are not shown)" : ""));
  }
}

// Null, with a problem, when MuJoCo refuses the file.
const mjModel* Compile(const std::string& path, MujocoEdit edit, std::string& problem) {
  char text[1024] = "";
  const std::unique_ptr<mjSpec, decltype(&mj_deleteSpec)> spec(
      mj_parseXML(path.c_str(), nullptr, text, sizeof(text)), mj_deleteSpec);
  problem = text;
  if (spec == nullptr) return nullptr;
  if (edit != nullptr) edit(*spec);
  const mjModel* model = mj_compile(spec.get(), nullptr);
  if (model == nullptr) problem = mjs_getError(spec.get());
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
  mju_setLogHandler(HandleMessage);
  std::string problem;
  loading = true;
  load_warnings.clear();
  try {
    model = Compile(path, edit, problem);
  } catch (const Error& error) {
    loading = false;
    throw Error(ErrorCode::kConfig, path + ": " + error.message());
  }
  loading = false;
  if (model == nullptr) throw Error(ErrorCode::kConfig, path + ": " + problem);
  // The standard files warn of attributes that a later MuJoCo will drop; only the user's own are
  // worth a word.
  if (!load_warnings.empty() && path == xml_file) LogWarn(path + ": " + load_warnings);
  return model;
}

}  // namespace weft
