// weft bench rlhf: steps of RLHF and of pretraining beside recorded peers.
#pragma once

#include "program/commands.h"

namespace weft {

// Each row trains in a process of its own. A row whose data are not on this machine is left out,
// with a line that says where they are looked for. Throws Error(kConfig) for an unknown row.
int BenchRlhf(const BenchOptions& options, int threads);

}  // namespace weft
