#include "dataflow/process.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sstream>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/file.h"

extern char** environ;  // NOLINT(readability-identifier-naming): POSIX

namespace weft {
namespace {

[[noreturn]] void Fail(const std::string& what, int error) {
  throw Error(ErrorCode::kIo, what + ": " + std::strerror(error));
}

}  // namespace

void WriteRendezvous(const std::string& path, const Rendezvous& rendezvous) {
  std::ostringstream text;
  text << "weft-worker 1\n"
       << rendezvous.endpoint << "\n"
       << std::hex << rendezvous.session << std::dec << "\n"
       << rendezvous.process << " " << rendezvous.incarnation << "\n";
  const std::string bytes = text.str();
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) Fail("cannot create " + path, errno);
  const ssize_t written = write(file, bytes.data(), bytes.size());
  const int error = errno;
  close(file);
  if (written != static_cast<ssize_t>(bytes.size())) Fail("cannot write " + path, error);
}

Rendezvous ReadRendezvous(const std::string& path) {
  std::istringstream text(ReadFile(path, 4096));
  std::string magic, version;
  Rendezvous rendezvous;
  text >> magic >> version >> rendezvous.endpoint >> std::hex >> rendezvous.session >> std::dec >>
      rendezvous.process >> rendezvous.incarnation;
  if (!text || magic != "weft-worker" || version != "1") {
    throw Error(ErrorCode::kCorrupt, path + " is not the address of a run");
  }
  return rendezvous;
}

PrivateFolder::PrivateFolder() {
  const char* temporary = std::getenv("TMPDIR");
  path_ = std::string(temporary != nullptr && std::strlen(temporary) < 64 ? temporary : "/tmp") +
          "/weft-XXXXXX";
  if (mkdtemp(path_.data()) == nullptr)
    Fail("cannot make a private folder " + path_, errno);  // mode 0700
}

PrivateFolder::~PrivateFolder() {
  try {
    RemoveTree(path_);
  } catch (const Error&) {
    // A folder that stays behind does no harm.
  }
}

uint64_t RandomSession() {
  uint64_t session = 0;
  while (session == 0) {
    if (getrandom(&session, sizeof(session), 0) != sizeof(session) && errno != EINTR)
      Fail("getrandom", errno);
  }
  return session;
}

int StartProcess(const std::vector<std::string>& arguments) {
  WEFT_CHECK(!arguments.empty()) << "the command of a worker process is empty";
  std::vector<char*> pointers;
  for (const std::string& argument : arguments)
    pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);

  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const int error =
      posix_spawnp(&pid, pointers[0], &actions, &attributes, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) Fail("cannot start " + arguments[0], error);
  return pid;
}

std::optional<std::string> EndOfProcess(int pid) {
  int status = 0;
  const pid_t ended = waitpid(pid, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return {};
  if (ended < 0) return "it is gone";
  if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status));
  return "exit status " + std::to_string(WEXITSTATUS(status));
}

void KillProcess(int pid) {
  kill(pid, SIGKILL);
}

void DieWithParent() {
  const pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent || parent == 1) {
    throw Error(ErrorCode::kUnavailable, "the main process of the run has ended already");
  }
}

}  // namespace weft
