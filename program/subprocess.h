// Starting this very executable again, for repro and bench.
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

namespace weft {

// Starts weft with these arguments; standard output and error go to log_path (appended). Throws
// Error(kUnavailable).
pid_t StartSelf(const std::vector<std::string>& arguments, const std::string& log_path);

// Waits for any of the children; returns the pid and its exit status (128 + signal when it was
// killed).
std::pair<pid_t, int> WaitAny();

// Runs weft with these arguments and returns its standard output; throws Error(kUnavailable) with
// the end of its error output when it fails.
std::string OutputOfSelf(const std::vector<std::string>& arguments);

}  // namespace weft
