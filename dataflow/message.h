// What travels along an edge.
#pragma once

#include <cstdint>

#include "tensor/tensor_map.h"

namespace weft {

// body is shared by handle inside a process: a reader never writes into it. version is the writer's
// business (the version of parameters, the number of a rollout).
struct Message {
  TensorMap body;
  int64_t version = 0;
};

}  // namespace weft
