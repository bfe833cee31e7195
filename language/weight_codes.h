// Quantised blocks as the kernels of tensor/kernels_quantised.h read them: codes with a scale and
// an offset for 32 elements.
#pragma once

#include <cstdint>
#include <optional>

#include "language/weight_type.h"
#include "tensor/kernels_quantised.h"

namespace weft {

// The width that holds the type's codes; none for types that are not such blocks (K-quants, plain
// numbers), which are read as numbers.
std::optional<kernels::CodeWidth> CodeWidthOf(WeightType type);

// A row of `elements` (a multiple of 32): codes [elements], scales and offsets [elements / 32] in
// half precision, with weight = scale * code + offset exactly as DequantiseRow gives it. False
// where an offset would not fit half precision.
bool ReadCodes(WeightType type, const uint8_t* row, int64_t elements, int8_t* codes,
               uint16_t* scales, uint16_t* offsets);

}  // namespace weft
