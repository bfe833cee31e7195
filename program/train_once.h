// A short training run as a measurement.
#pragma once

#include <string>
#include <vector>

namespace weft {

// Trains in a fresh process, `weft train` with these arguments, under a run name that is used
// again; returns its closing line, a JSON object. Throws Error(kUnavailable) with the end of its
// error output when it fails.
std::string TrainOnce(std::vector<std::string> arguments);

}  // namespace weft
