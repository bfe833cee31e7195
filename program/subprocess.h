// Starting this very executable again, for repro and bench, and other programs that are fed.
#pragma once

#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace weft {

// Starts weft with these arguments; standard output and error go to log_path (appended). Throws
// Error(kUnavailable).
pid_t StartSelf(const std::vector<std::string>& arguments, const std::string& log_path);

// Waits for any of the children; returns the pid and its exit status (128 + signal when it was
// killed).
std::pair<pid_t, int> WaitAny();

// Runs weft with these arguments on the same terminal and returns its exit status. A Ctrl-C is the
// child's to answer.
int RunSelf(const std::vector<std::string>& arguments);

// Runs weft with these arguments and returns its standard output; throws Error(kUnavailable) with
// the end of its error output when it fails.
std::string OutputOfSelf(const std::vector<std::string>& arguments);

// A program on PATH that reads from its standard input what is written here and, where that is
// asked for, answers in lines on its standard output.
class FedProcess {
 public:
  // command: the program's name and its arguments. Throws Error(kUnavailable) when it cannot be
  // started.
  explicit FedProcess(const std::vector<std::string>& command, bool answers = false);
  // Ends the program when Finish was not called.
  ~FedProcess();
  FedProcess(const FedProcess&) = delete;
  FedProcess& operator=(const FedProcess&) = delete;

  // All throw Error(kUnavailable) when the program ended too soon or with a failure.
  void Write(std::string_view bytes);
  std::string ReadLine();  // of its answers, without the end of the line
  void Finish();           // closes its input and waits for its end

 private:
  const std::string name_;
  int input_ = -1;
  pid_t pid_ = -1;
};

}  // namespace weft
