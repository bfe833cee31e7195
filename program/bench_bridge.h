// The bridge to Python environments beside Gymnasium's AsyncVectorEnv, measured in the same run.
#pragma once

#include <string>
#include <vector>

namespace weft {

struct BridgeFigure {
  std::vector<double> ours, theirs;  // steps per second of all environments, sample by sample
};

// As many environments of Gymnasium's `id` as workers, each in a process on either side, under
// random actions; both are sampled in turns. Takes some fifteen seconds. Throws
// Error(kUnavailable) where Python (WEFT_PYTHON, or python3) or one of its packages is not there.
BridgeFigure BenchBridge(const std::string& id, int workers);

}  // namespace weft
