#include "program/subprocess.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/file.h"
#include "base/text.h"

extern char** environ;

namespace weft {
namespace {

std::vector<char*> Words(const std::vector<std::string>& arguments) {
  std::vector<char*> words;
  for (const auto& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  return words;
}

pid_t Spawn(const std::vector<std::string>& arguments, posix_spawn_file_actions_t* actions) {
  std::vector<char*> words = Words(arguments);
  std::string self = "weft";
  words.insert(words.begin(), self.data());
  pid_t pid = 0;
  const int error = posix_spawn(&pid, "/proc/self/exe", actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(actions);
  if (error != 0) {
    throw Error(ErrorCode::kUnavailable,
                std::string("cannot start weft again: ") + std::strerror(error));
  }
  return pid;
}

int WaitFor(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

int StatusOf(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

pid_t StartSelf(const std::vector<std::string>& arguments, const std::string& log_path) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                   0644);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  return Spawn(arguments, &actions);
}

std::pair<pid_t, int> WaitAny() {
  int status = 0;
  pid_t pid = -1;
  do {
    pid = waitpid(-1, &status, 0);
  } while (pid < 0 && errno == EINTR);
  WEFT_CHECK_GT(pid, 0) << "no child to wait for";
  return {pid, StatusOf(status)};
}

int RunSelf(const std::vector<std::string>& arguments) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const auto interrupt = std::signal(SIGINT, [](int) {});
  const auto terminate = std::signal(SIGTERM, [](int) {});
  const int status = WaitFor(Spawn(arguments, &actions));
  std::signal(SIGINT, interrupt);
  std::signal(SIGTERM, terminate);
  return StatusOf(status);
}

std::string OutputOfSelf(const std::vector<std::string>& arguments) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw Error(ErrorCode::kUnavailable, "no pipe: " + std::string(strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  const pid_t pid = Spawn(arguments, &actions);
  close(ends[1]);
  std::string output;
  char buffer[4096];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) != 0;) {
    if (count > 0) {
      output.append(buffer, static_cast<size_t>(count));
    } else if (errno != EINTR) {
      break;
    }
  }
  close(ends[0]);
  const int status = StatusOf(WaitFor(pid));
  if (status != 0) {
    throw Error(ErrorCode::kUnavailable,
                "weft " + Join(arguments, " ") + " ended with status " + std::to_string(status));
  }
  return output;
}

// A socket, not a pipe: writing to a program that has ended is an error instead of a signal.
FedProcess::FedProcess(const std::vector<std::string>& command, bool answers)
    : name_(command.at(0)) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error(ErrorCode::kUnavailable, "no socket: " + std::string(strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
  if (answers) posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  const int error =
      posix_spawnp(&pid_, command[0].c_str(), &actions, nullptr, Words(command).data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  input_ = ends[0];
  if (error != 0) {
    pid_ = -1;
    close(input_);
    throw Error(ErrorCode::kUnavailable,
                "cannot start " + name_ + ": " + std::string(strerror(error)));
  }
}

FedProcess::~FedProcess() {
  if (pid_ < 0) return;
  kill(pid_, SIGTERM);
  close(input_);
  WaitFor(pid_);
}

void FedProcess::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = send(input_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
    } else if (errno != EINTR) {
      throw Error(ErrorCode::kUnavailable, name_ + " stopped reading what it was given");
    }
  }
}

std::string FedProcess::ReadLine() {
  std::string line;
  for (char byte = 0; byte != '\n';) {
    const ssize_t count = read(input_, &byte, 1);
    if (count == 1) {
      line += byte;
    } else if (count == 0 || errno != EINTR) {
      throw Error(ErrorCode::kUnavailable, name_ + " ended instead of answering");
    }
  }
  line.pop_back();
  return line;
}

void FedProcess::Finish() {
  close(input_);
  const int status = StatusOf(WaitFor(pid_));
  pid_ = -1;
  if (status != 0) {
    throw Error(ErrorCode::kUnavailable, name_ + " ended with status " + std::to_string(status));
  }
}

}  // namespace weft
