// Quantised blocks as the kernels of tensor/kernels_quantised.h read them: codes with a scale and
// an offset for 32 elements and, of K-quants, factors of both for 16.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "language/weight_type.h"
#include "tensor/kernels_quantised.h"

namespace weft {

// The form that holds the type's codes; none for plain numbers.
std::optional<kernels::CodeForm> CodeFormOf(WeightType type);

// A row of weights, a multiple of the type's block.
struct CodedRow {
  std::vector<int8_t> codes;
  std::vector<uint16_t> scales, offsets;  // in half precision
  std::vector<int8_t> factors, offset_factors;

  explicit CodedRow(int64_t elements);
  kernels::QuantisedColumn view() const {
    return {codes.data(), scales.data(), offsets.data(), factors.data(), offset_factors.data()};
  }
};

// Weights exactly as DequantiseRow gives them, in the type's form and in those that hold more.
// False where a scale is not finite or an offset would not fit half precision.
bool ReadCodes(WeightType type, const uint8_t* row, CodedRow& to);

}  // namespace weft
