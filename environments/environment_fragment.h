// The environment as a fragment: input `action` (leaf `action`, [N] or [N, A]), output `timestep`
// (the observation leaves by name, then reward, discount, type and episode_id). Start resets all
// rows and writes the first time step, so the output is primed; every Step reads one action and
// writes the time step that it leads to.
#pragma once

#include <cstdint>

#include "dataflow/fragment.h"
#include "environments/environment_config.h"

namespace weft {

// Replica i of n steps rows [i N / n, (i + 1) N / n) of the config's N, which n must divide:
// Error(kConfig) when the fragment is made. Messages carry the number of their time step as
// version.
FragmentFactory EnvironmentFragment(const EnvironmentConfig& config, uint64_t seed,
                                    Purpose purpose = Purpose::kEnvironment);

}  // namespace weft
