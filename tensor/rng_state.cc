#include "tensor/rng_state.h"

#include <string>

namespace weft {

Tensor SavePositions(std::span<const Rng> rngs) {
  Tensor positions = Tensor::Empty({static_cast<int64_t>(rngs.size())}, DType::kInt64);
  for (size_t i = 0; i < rngs.size(); ++i) {
    positions.data<int64_t>()[i] = static_cast<int64_t>(rngs[i].state().position);
  }
  return positions;
}

void LoadPositions(const Tensor& positions, std::span<Rng> rngs) {
  const auto saved = positions.data<int64_t>();
  if (saved.size() != rngs.size()) {
    throw Error(ErrorCode::kCorrupt, "saved state of " + std::to_string(saved.size()) +
                                         " random streams, not " + std::to_string(rngs.size()));
  }
  for (size_t i = 0; i < rngs.size(); ++i) {
    Rng::State state = rngs[i].state();
    state.position = static_cast<uint64_t>(saved[i]);
    rngs[i] = Rng(state);
  }
}

}  // namespace weft
