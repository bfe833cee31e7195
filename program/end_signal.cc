#include "program/end_signal.h"

#include <cerrno>
#include <csignal>
#include <unistd.h>

#include "base/check.h"

namespace weft {
namespace {

// What signals write into.
int signal_pipe[2] = {-1, -1};

}  // namespace

void CatchSignals() {
  if (pipe(signal_pipe) != 0) throw Error(ErrorCode::kIo, "no pipe is left for signals");
  struct sigaction action {};
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  action.sa_handler = [](int) {
    const char byte = 0;
    [[maybe_unused]] const ssize_t written = write(signal_pipe[1], &byte, 1);
  };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

void AwaitSignal() {
  char byte = 0;
  while (read(signal_pipe[0], &byte, 1) < 0 && errno == EINTR) {
  }
}

}  // namespace weft
