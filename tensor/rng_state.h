// Random generators as tensors, for checkpoints: the position in the stream is all that changes.
#pragma once

#include <span>

#include "base/random.h"
#include "tensor/tensor.h"

namespace weft {

// i64 [n], the positions. Load sets them on generators that were made alike; throws Error(kCorrupt)
// when n differs.
Tensor SavePositions(std::span<const Rng> rngs);
void LoadPositions(const Tensor& positions, std::span<Rng> rngs);

}  // namespace weft
