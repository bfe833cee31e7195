// How the numbers of a weight are stored: plain, or in blocks of 32 or 256 along a row that share
// scales (ggml's types; a row is the input dimension of [out, in]). Block layouts: weight_blocks.h.
#pragma once

#include <cstdint>
#include <string_view>

namespace weft {

enum class WeightType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
};

struct WeightTypeInfo {
  WeightType type;
  std::string_view name;  // "F32", "Q4_1", "Q4_K", as GGUF tools print it
  uint32_t ggml;          // number in a GGUF tensor's description
  int64_t block;          // elements of a block; divides every row
  int64_t block_bytes;
  bool writable;  // weft quantises into it (weight_blocks.h)
};

const WeightTypeInfo& Info(WeightType type);
// Null when weft has no such type.
const WeightTypeInfo* FindGgmlType(uint32_t ggml);
const WeightTypeInfo* FindWeightType(std::string_view name);  // in any case: "q4_1", "Q4_1"

// Bytes of a row; elements is a multiple of the block.
int64_t RowBytes(WeightType type, int64_t elements);

}  // namespace weft
