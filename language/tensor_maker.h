// Makes the tensors of a file from canonical weights: fuses, permutes, transposes and converts.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "language/stored_weight.h"
#include "language/weight_layout.h"

namespace weft {

class TensorMaker {
 public:
  explicit TensorMaker(std::span<const StoredWeight> weights);  // kept

  // Fills RowBytes(type, columns) bytes for each row. Rows that have this type already are copied
  // as they are. Throws Error(kInvalidArgument) when a weight is missing or has another shape.
  void Fill(const StoredTensor& tensor, WeightType type, std::span<uint8_t> out) const;

  // The type that all parts of the tensor have, or F32.
  WeightType TypeOf(const StoredTensor& tensor) const;

 private:
  const StoredWeight& Find(const WeightSpec& spec) const;
  void FillTransposed(const StoredTensor& tensor, WeightType type, std::span<uint8_t> out) const;

  std::map<std::string_view, const StoredWeight*, std::less<>> weights_;
};

}  // namespace weft
