#include "language/weight_codes.h"

#include <algorithm>
#include <cstring>

#include "language/weight_blocks.h"

namespace weft {
namespace {

using kernels::CodeForm;

constexpr int64_t kBlock = kernels::kQuantisedBlock, kRun = kernels::kQuantisedRun;
constexpr int64_t kSuperBlock = 256;  // of the K-quants

uint16_t LoadHalf(const uint8_t* p) {
  uint16_t half;
  std::memcpy(&half, p, 2);
  return half;
}

uint32_t LoadWord(const uint8_t* p) {
  uint32_t word;
  std::memcpy(&word, p, 4);
  return word;
}

bool IsFinite(uint16_t half) {
  return (half & 0x7c00) != 0x7c00;
}

// A half that is -middle times another: the middle code stands for zero where a block has no offset
// of its own. Not finite where it would not be exact.
uint16_t Centre(uint16_t scale, int middle) {
  const float offset = -static_cast<float>(middle) * HalfToFloat(scale);
  const uint16_t half = FloatToHalf(offset);
  return HalfToFloat(half) == offset ? half : uint16_t{0x7c00};
}

// Low nibbles are elements 0 to 15, high ones 16 to 31; `high_bits` adds a fifth bit to each.
void ReadNibbles(const uint8_t* nibbles, uint32_t high_bits, int8_t* codes) {
  for (int i = 0; i < 16; ++i) {
    codes[i] = static_cast<int8_t>((nibbles[i] & 15) | (high_bits >> i & 1) << 4);
    codes[16 + i] = static_cast<int8_t>(nibbles[i] >> 4 | (high_bits >> (16 + i) & 1) << 4);
  }
}

// Of 32 elements.
void ReadBlock(WeightType type, const uint8_t* in, int8_t* codes, uint16_t& scale,
               uint16_t& offset) {
  scale = LoadHalf(in);
  switch (type) {
    case WeightType::kQ4_0:
      offset = Centre(scale, 8);
      return ReadNibbles(in + 2, 0, codes);
    case WeightType::kQ4_1:
      offset = LoadHalf(in + 2);
      return ReadNibbles(in + 4, 0, codes);
    case WeightType::kQ5_0:
      offset = Centre(scale, 16);
      return ReadNibbles(in + 6, LoadWord(in + 2), codes);
    case WeightType::kQ5_1:
      offset = LoadHalf(in + 2);
      return ReadNibbles(in + 8, LoadWord(in + 4), codes);
    default:  // Q8_0
      offset = 0;
      std::memcpy(codes, in + 2, kBlock);
  }
}

// A block of 256 at its place in a row; the layouts are those of weight_blocks.cc.
struct SuperBlock {
  int8_t *codes, *factors, *offset_factors;  // [256], [16], [16]
  uint16_t scale = 0, offset = 0;

  void ReadQ2_K(const uint8_t* in) {
    scale = LoadHalf(in + 80);
    offset = LoadHalf(in + 82);
    for (int run = 0; run < 16; ++run) {
      factors[run] = static_cast<int8_t>(in[run] & 15);
      offset_factors[run] = static_cast<int8_t>(-(in[run] >> 4));
      const int shift = 2 * (run % 8 / 2), first = 16 + 32 * (run / 8) + 16 * (run % 2);
      for (int i = 0; i < 16; ++i) {
        codes[16 * run + i] = static_cast<int8_t>((in[first + i] >> shift) & 3);
      }
    }
  }
  // Values from -4: code 4 stands for zero.
  void ReadQ3_K(const uint8_t* in) {
    scale = LoadHalf(in + 108);
    offset = Centre(scale, 4);
    const uint8_t* const packed = in + 96;
    for (int run = 0; run < 16; ++run) {
      const int low = (packed[run % 8] >> (4 * (run / 8))) & 15;
      const int high = (packed[8 + run % 4] >> (2 * (run / 4))) & 3;
      factors[run] = offset_factors[run] = static_cast<int8_t>((low | (high << 4)) - 32);
      const int shift = 2 * (run % 8 / 2), first = 16 * (run % 2);
      for (int i = 0; i < 16; ++i) {
        const int value = (in[32 + 32 * (run / 8) + first + i] >> shift) & 3;
        const int bit = (in[first + i] >> (run / 2)) & 1;
        codes[16 * run + i] = static_cast<int8_t>(value + 4 * bit);
      }
    }
  }
  // high: Q5_K's fifth bits, or null.
  void ReadQ45_K(const uint8_t* in, const uint8_t* high, const uint8_t* values) {
    scale = LoadHalf(in);
    offset = LoadHalf(in + 2);
    const uint8_t* const packed = in + 4;
    for (int run = 0; run < 8; ++run) {
      const bool early = run < 4;
      const int factor =
          early ? packed[run] & 63 : (packed[run + 4] & 15) | ((packed[run - 4] >> 6) << 4);
      const int minimum =
          early ? packed[run + 4] & 63 : (packed[run + 4] >> 4) | ((packed[run] >> 6) << 4);
      for (int half = 0; half < 2; ++half) {
        factors[2 * run + half] = static_cast<int8_t>(factor);
        offset_factors[2 * run + half] = static_cast<int8_t>(-minimum);
      }
      for (int i = 0; i < 32; ++i) {
        int value = (values[32 * (run / 2) + i] >> (4 * (run % 2))) & 15;
        if (high != nullptr) value |= ((high[i] >> run) & 1) << 4;
        codes[32 * run + i] = static_cast<int8_t>(value);
      }
    }
  }
  void ReadQ6_K(const uint8_t* in) {
    scale = LoadHalf(in + 208);
    offset = 0;
    for (int run = 0; run < 16; ++run) {
      factors[run] = static_cast<int8_t>(in[192 + run]);
      offset_factors[run] = 0;
      const int half = run / 8, quarter = run % 8 / 2, first = 16 * (run % 2);
      for (int i = 0; i < 16; ++i) {
        const int nibble =
            (in[64 * half + 32 * (quarter % 2) + first + i] >> (4 * (quarter / 2))) & 15;
        const int upper = (in[128 + 32 * half + first + i] >> (2 * quarter)) & 3;
        codes[16 * run + i] = static_cast<int8_t>((nibble | (upper << 4)) - 32);
      }
    }
  }
  void Read(WeightType type, const uint8_t* in) {
    switch (type) {
      case WeightType::kQ2_K:
        return ReadQ2_K(in);
      case WeightType::kQ3_K:
        return ReadQ3_K(in);
      case WeightType::kQ4_K:
        return ReadQ45_K(in, nullptr, in + 16);
      case WeightType::kQ5_K:
        return ReadQ45_K(in, in + 16, in + 48);
      default:
        return ReadQ6_K(in);
    }
  }
};

}  // namespace

std::optional<CodeForm> CodeFormOf(WeightType type) {
  switch (type) {
    case WeightType::kQ4_0:
    case WeightType::kQ4_1:
      return CodeForm{.bits = 4};
    case WeightType::kQ5_0:
    case WeightType::kQ5_1:
    case WeightType::kQ8_0:
      return CodeForm{.bits = 8};
    case WeightType::kQ2_K:
    case WeightType::kQ3_K:
    case WeightType::kQ4_K:
      return CodeForm{.bits = 4, .runs = true};
    case WeightType::kQ5_K:
    case WeightType::kQ6_K:
      return CodeForm{.bits = 8, .runs = true};
    default:
      return std::nullopt;
  }
}

CodedRow::CodedRow(int64_t elements)
    : codes(static_cast<size_t>(elements)),
      scales(static_cast<size_t>(elements / kBlock)),
      offsets(scales.size()),
      factors(static_cast<size_t>(elements / kRun), 1),
      offset_factors(factors.size(), 1) {}

bool ReadCodes(WeightType type, const uint8_t* row, CodedRow& to) {
  const WeightTypeInfo& info = Info(type);
  const int64_t each = info.block / kBlock;  // scales of a block
  bool exact = true;
  for (int64_t b = 0; b < std::ssize(to.codes) / info.block; ++b, row += info.block_bytes) {
    uint16_t *const scales = to.scales.data() + b * each, *const offsets =
                                                              to.offsets.data() + b * each;
    int8_t* const codes = to.codes.data() + b * info.block;
    if (info.block == kSuperBlock) {
      SuperBlock block{codes, to.factors.data() + b * kSuperBlock / kRun,
                       to.offset_factors.data() + b * kSuperBlock / kRun};
      block.Read(type, row);
      std::fill_n(scales, each, block.scale);
      std::fill_n(offsets, each, block.offset);
    } else {
      ReadBlock(type, row, codes, scales[0], offsets[0]);
    }
    exact = exact && IsFinite(scales[0]) && IsFinite(offsets[0]);
  }
  return exact;
}

}  // namespace weft
