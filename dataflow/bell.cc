#include "dataflow/bell.h"

#include <cerrno>
#include <cstring>
#include <linux/futex.h>
#include <poll.h>
#include <string>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"

namespace weft {
namespace {

// The system call itself: the semaphores and atomic waits of this compiler's library can miss a
// wake-up (its bug 104928).
void Futex(std::atomic<uint32_t>* word, int operation, uint32_t value) {
  static_assert(sizeof(*word) == sizeof(uint32_t));
  syscall(SYS_futex, word, operation, value, nullptr, nullptr, 0);
}

}  // namespace

void RunnerBell::Ring() {
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst)) Futex(&epoch_, FUTEX_WAKE_PRIVATE, 1);
}

void RunnerBell::Wait(uint32_t seen) {
  for (int i = 0; i < spin_; ++i) {
    if (epoch() != seen) return;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  sleeping_.store(true, std::memory_order_seq_cst);
  while (epoch() == seen)
    Futex(&epoch_, FUTEX_WAIT_PRIVATE, seen);  // returns at once when it differs
  sleeping_.store(false, std::memory_order_relaxed);
}

PollBell::PollBell() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (descriptor_ < 0) {
    throw Error(ErrorCode::kIo, std::string("cannot make an eventfd: ") + std::strerror(errno));
  }
}

PollBell::~PollBell() {
  close(descriptor_);
}

void PollBell::Ring() {
  if (rung_.exchange(true, std::memory_order_seq_cst)) return;
  const uint64_t one = 1;
  (void)!write(descriptor_, &one,
               sizeof(one));  // cannot fail but by overflow, which means it is rung
}

void PollBell::Clear() {
  uint64_t count = 0;
  (void)!read(descriptor_, &count, sizeof(count));  // empty when nobody rang
  rung_.store(false, std::memory_order_seq_cst);
}

void PollBell::Wait(int milliseconds) const {
  pollfd waited{.fd = descriptor_, .events = POLLIN, .revents = 0};
  poll(&waited, 1, milliseconds);  // a signal ends the wait early, which does no harm
}

}  // namespace weft
