#include "program/subprocess.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/file.h"
#include "base/text.h"

extern char** environ;

namespace weft {
namespace {

pid_t Spawn(const std::vector<std::string>& arguments, posix_spawn_file_actions_t* actions) {
  std::vector<char*> words;
  std::string self = "weft";
  words.push_back(self.data());
  for (const auto& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, "/proc/self/exe", actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(actions);
  if (error != 0) {
    throw Error(ErrorCode::kUnavailable,
                std::string("cannot start weft again: ") + std::strerror(error));
  }
  return pid;
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
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (StatusOf(status) != 0) {
    throw Error(ErrorCode::kUnavailable, "weft " + Join(arguments, " ") + " ended with status " +
                                             std::to_string(StatusOf(status)));
  }
  return output;
}

}  // namespace weft
