// Replays recorded transitions of the reference implementation (reference/environments/README.md
// has the format) and compares: single steps from given states, rollouts open-loop, action bounds,
// and by seeded sampling the distribution of first states and of the random policy's returns.
// Tolerances are those that the files state for another machine: they grow with the recorded
// sensitivity of each row.
#pragma once

#include <string>

#include "base/comparison.h"

namespace weft {

// id: the environment to test, "" for the one that the file names. Throws Error for a file that
// cannot be read or holds no such recording, and for an unknown environment.
VerifyReport VerifyEnvironmentFile(const std::string& id, const std::string& path);

// Every .safetensors file of the folder; those of environments that are not registered are skipped.
VerifyReport VerifyEnvironmentFolder(const std::string& folder);

}  // namespace weft
