#include "environments/mujoco/mujoco_guard.h"

#include <atomic>
#include <cstdio>
#include <mujoco/mujoco.h>
#include <string>

#include "base/check.h"
#include "base/log.h"

namespace weft {
namespace {

constexpr int kMaxWarnings = 10;  // shown in a process: a diverging simulation warns at every step
std::atomic<int> warnings{0};
thread_local std::jmp_buf* guard = nullptr;
thread_local char problem[1024];
thread_local std::string* collected = nullptr;  // see MujocoWarnings

void Handle(const mjLogMessage* message) {
  if (message->level == mjLOG_ERROR) {
    std::snprintf(problem, sizeof(problem), "%s", message->subject);
    if (guard != nullptr) std::longjmp(*guard, 1);
    // Within the compiler of a standard file, which is C++.
    mujoco_guard::Throw();
  }
  if (message->level != mjLOG_WARNING) return;
  if (collected != nullptr) {
    *collected += std::string(message->subject) + "; ";
  } else if (const int count = ++warnings; count <= kMaxWarnings) {
    LogWarn("MuJoCo: " + std::string(message->subject) +
            (count == kMaxWarnings ? " (further warnings of MuJoCo are not shown)" : ""));
  }
}

}  // namespace

namespace mujoco_guard {

std::jmp_buf*& Target() {
  return guard;
}
void Throw() {
  throw Error(ErrorCode::kInternal, std::string("MuJoCo: ") + problem);
}

}  // namespace mujoco_guard

void HandleMujocoMessages() {
  mju_setLogHandler(Handle);
}

MujocoWarnings::MujocoWarnings() : outer_(collected) {
  collected = &text_;
}
MujocoWarnings::~MujocoWarnings() {
  collected = outer_;
}

}  // namespace weft
