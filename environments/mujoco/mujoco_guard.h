// MuJoCo reports an error by a handler that must not return. These calls turn it into an
// Error(kInternal), whatever C code it leaves: a jump back to the guard, which C allows and an
// exception thrown through frames of C does not.
#pragma once

#include <csetjmp>
#include <string>

namespace weft {

// Takes over MuJoCo's messages in this process: errors as said, warnings into the log (or, while a
// MujocoWarnings lives on this thread, into it). Without it MuJoCo would end the process after an
// error and write MUJOCO_LOG.TXT into the working folder.
void HandleMujocoMessages();

// Collects the warnings of this thread while it lives.
class MujocoWarnings {
 public:
  MujocoWarnings();
  ~MujocoWarnings();
  MujocoWarnings(const MujocoWarnings&) = delete;
  MujocoWarnings& operator=(const MujocoWarnings&) = delete;
  const std::string& text() const { return text_; }  // "WARNING; " each

 private:
  std::string text_;
  std::string* outer_;
};

namespace mujoco_guard {
std::jmp_buf*& Target();  // of this thread; null: no guard
[[noreturn]] void Throw();
}  // namespace mujoco_guard

// call() may do nothing but call MuJoCo's C functions: a jump runs no destructors. Some 10 ns.
template <class Call>
void GuardMujoco(const Call& call) {
  std::jmp_buf*& target = mujoco_guard::Target();
  std::jmp_buf* const outer = target;
  std::jmp_buf here;
  if (setjmp(here) == 0) {
    target = &here;
    call();
    target = outer;
  } else {
    mujoco_guard::Target() = outer;
    mujoco_guard::Throw();
  }
}

}  // namespace weft
