#include "language/weight_codes.h"

#include <cstring>

#include "language/weight_blocks.h"

namespace weft {
namespace {

using kernels::CodeWidth;

constexpr int64_t kBlock = kernels::kQuantisedBlock;

uint16_t LoadHalf(const uint8_t* p) {
  uint16_t half;
  std::memcpy(&half, p, 2);
  return half;
}

// Low nibbles are elements 0 to 15, high ones 16 to 31; `high_bits` adds a fifth bit to each.
void ReadNibbles(const uint8_t* nibbles, uint32_t high_bits, int8_t* codes) {
  for (int i = 0; i < 16; ++i) {
    codes[i] = static_cast<int8_t>((nibbles[i] & 15) | (high_bits >> i & 1) << 4);
    codes[16 + i] = static_cast<int8_t>(nibbles[i] >> 4 | (high_bits >> (16 + i) & 1) << 4);
  }
}

}  // namespace

std::optional<CodeWidth> CodeWidthOf(WeightType type) {
  switch (type) {
    case WeightType::kQ4_0:
    case WeightType::kQ4_1:
      return CodeWidth::k4;
    case WeightType::kQ5_0:
    case WeightType::kQ5_1:
    case WeightType::kQ8_0:
      return CodeWidth::k8;
    default:
      return std::nullopt;
  }
}

bool ReadCodes(WeightType type, const uint8_t* row, int64_t elements, int8_t* codes,
               uint16_t* scales, uint16_t* offsets) {
  const int64_t bytes = Info(type).block_bytes;
  bool exact = true;
  for (int64_t b = 0; b < elements / kBlock; ++b, row += bytes, codes += kBlock) {
    scales[b] = LoadHalf(row);
    // The middle code stands for zero where a block has no offset of its own.
    const auto centre = [&](int middle) {
      const float offset = -static_cast<float>(middle) * HalfToFloat(scales[b]);
      offsets[b] = FloatToHalf(offset);
      exact &= HalfToFloat(offsets[b]) == offset;
    };
    const auto high_bits = [&](int64_t at) {
      uint32_t bits;
      std::memcpy(&bits, row + at, 4);
      return bits;
    };
    switch (type) {
      case WeightType::kQ4_0:
        centre(8);
        ReadNibbles(row + 2, 0, codes);
        break;
      case WeightType::kQ4_1:
        offsets[b] = LoadHalf(row + 2);
        ReadNibbles(row + 4, 0, codes);
        break;
      case WeightType::kQ5_0:
        centre(16);
        ReadNibbles(row + 6, high_bits(2), codes);
        break;
      case WeightType::kQ5_1:
        offsets[b] = LoadHalf(row + 2);
        ReadNibbles(row + 8, high_bits(4), codes);
        break;
      default:  // Q8_0
        offsets[b] = 0;
        std::memcpy(codes, row + 2, kBlock);
        break;
    }
  }
  return exact;
}

}  // namespace weft
