// Rows of numbers in the types of weight_type.h, to and from f32. The blocks are ggml's, bit for
// bit (ggml-common.h; gguf-py's quants.py is the arithmetic); K-quants are only read.
#pragma once

#include <cstdint>

#include "language/weight_type.h"

namespace weft {

// IEEE half precision; to it: to nearest, ties to even, what is too large becomes infinite.
float HalfToFloat(uint16_t half);
uint16_t FloatToHalf(float value);

// elements is a multiple of the type's block; in and out hold RowBytes(type, elements) bytes or
// `elements` floats and do not overlap. No alignment is needed.
void DequantiseRow(WeightType type, const uint8_t* in, int64_t elements, float* out);
// Needs Info(type).writable. Deterministic; values must be finite.
void QuantiseRow(WeightType type, const float* in, int64_t elements, uint8_t* out);

}  // namespace weft
