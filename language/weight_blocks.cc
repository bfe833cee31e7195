#include "language/weight_blocks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "tensor/tensor.h"

namespace weft {
namespace {

constexpr int kBlock = 32;        // of Q4_0 to Q8_0
constexpr int kSuperBlock = 256;  // of the K-quants

uint16_t LoadHalfBits(const uint8_t* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return bits;
}

float LoadHalf(const uint8_t* at) {
  return HalfToFloat(LoadHalfBits(at));
}

void StoreHalf(float value, uint8_t* at) {
  const uint16_t bits = FloatToHalf(value);
  std::memcpy(at, &bits, sizeof(bits));
}

// --- from blocks of 32 -----------------------------------------------------------------------

// Low nibbles are elements 0 to 15, high ones 16 to 31.
void DequantiseQ4_0(const uint8_t* in, float* out) {
  const float d = LoadHalf(in);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>((in[2 + i] & 15) - 8);
    out[16 + i] = d * static_cast<float>((in[2 + i] >> 4) - 8);
  }
}

void DequantiseQ4_1(const uint8_t* in, float* out) {
  const float d = LoadHalf(in), m = LoadHalf(in + 2);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(in[4 + i] & 15) + m;
    out[16 + i] = d * static_cast<float>(in[4 + i] >> 4) + m;
  }
}

// The fifth bits of all 32 elements stand together in front of the nibbles.
void DequantiseQ5_0(const uint8_t* in, float* out) {
  const float d = LoadHalf(in);
  uint32_t high;
  std::memcpy(&high, in + 2, sizeof(high));
  for (int i = 0; i < 16; ++i) {
    const int low = (in[6 + i] & 15) | (((high >> i) & 1) << 4);
    const int upper = (in[6 + i] >> 4) | (((high >> (16 + i)) & 1) << 4);
    out[i] = d * static_cast<float>(low - 16);
    out[16 + i] = d * static_cast<float>(upper - 16);
  }
}

void DequantiseQ5_1(const uint8_t* in, float* out) {
  const float d = LoadHalf(in), m = LoadHalf(in + 2);
  uint32_t high;
  std::memcpy(&high, in + 4, sizeof(high));
  for (int i = 0; i < 16; ++i) {
    const int low = (in[8 + i] & 15) | (((high >> i) & 1) << 4);
    const int upper = (in[8 + i] >> 4) | (((high >> (16 + i)) & 1) << 4);
    out[i] = d * static_cast<float>(low) + m;
    out[16 + i] = d * static_cast<float>(upper) + m;
  }
}

void DequantiseQ8_0(const uint8_t* in, float* out) {
  const float d = LoadHalf(in);
  for (int i = 0; i < kBlock; ++i) {
    out[i] = static_cast<float>(static_cast<int8_t>(in[2 + i])) * d;
  }
}

// --- from blocks of 256 ----------------------------------------------------------------------

// 16 runs of 16 elements, a 4-bit scale and minimum each; 2-bit values, four to a byte, 32 apart.
void DequantiseQ2_K(const uint8_t* in, float* out) {
  const uint8_t* scales = in;
  const uint8_t* values = in + 16;
  const float d = LoadHalf(in + 80), dmin = LoadHalf(in + 82);
  for (int run = 0; run < 16; ++run) {
    const float scale = d * static_cast<float>(scales[run] & 15);
    const float minimum = dmin * static_cast<float>(scales[run] >> 4);
    const int half = run / 8, shift = 2 * (run % 8 / 2), first = 32 * half + 16 * (run % 2);
    for (int i = 0; i < 16; ++i) {
      out[16 * run + i] = scale * static_cast<float>((values[first + i] >> shift) & 3) - minimum;
    }
  }
}

// As Q2_K with signed 6-bit scales and, in a mask of 32 bytes, the third bit: 4 less where it is 0.
void DequantiseQ3_K(const uint8_t* in, float* out) {
  const uint8_t* mask = in;
  const uint8_t* values = in + 32;
  const uint8_t* scales = in + 96;
  const float d = LoadHalf(in + 108);
  for (int run = 0; run < 16; ++run) {
    const int low = (scales[run % 8] >> (4 * (run / 8))) & 15;
    const int high = (scales[8 + run % 4] >> (2 * (run / 4))) & 3;
    const float scale = d * static_cast<float>((low | (high << 4)) - 32);
    const int half = run / 8, shift = 2 * (run % 8 / 2), first = 16 * (run % 2);
    for (int i = 0; i < 16; ++i) {
      const int value = (values[32 * half + first + i] >> shift) & 3;
      const int bit = (mask[first + i] >> (run / 2)) & 1;
      out[16 * run + i] = scale * static_cast<float>(value - (bit ? 0 : 4));
    }
  }
}

// Scale and minimum of run j of Q4_K and Q5_K: 8 of each, 6 bits, in 12 bytes.
void UnpackScale(const uint8_t* scales, int j, int& scale, int& minimum) {
  if (j < 4) {
    scale = scales[j] & 63;
    minimum = scales[j + 4] & 63;
  } else {
    scale = (scales[j + 4] & 15) | ((scales[j - 4] >> 6) << 4);
    minimum = (scales[j + 4] >> 4) | ((scales[j] >> 6) << 4);
  }
}

// Eight runs of 32; two runs share 32 bytes, the first in the low nibbles. high: Q5_K's fifth bits,
// bit j of byte i for element i of run j, or null.
void DequantiseQ45_K(const uint8_t* in, const uint8_t* high, const uint8_t* values, float* out) {
  const float d = LoadHalf(in), dmin = LoadHalf(in + 2);
  for (int run = 0; run < 8; ++run) {
    int scale = 0, minimum = 0;
    UnpackScale(in + 4, run, scale, minimum);
    const float run_scale = d * static_cast<float>(scale);
    const float run_minimum = dmin * static_cast<float>(minimum);
    for (int i = 0; i < 32; ++i) {
      int value = (values[32 * (run / 2) + i] >> (4 * (run % 2))) & 15;
      if (high) value |= ((high[i] >> run) & 1) << 4;
      out[32 * run + i] = run_scale * static_cast<float>(value) - run_minimum;
    }
  }
}

void DequantiseQ4_K(const uint8_t* in, float* out) {
  DequantiseQ45_K(in, nullptr, in + 16, out);
}
void DequantiseQ5_K(const uint8_t* in, float* out) {
  DequantiseQ45_K(in, in + 16, in + 48, out);
}

// 16 runs with a signed 8-bit scale; low nibbles 64 apart, upper two bits four to a byte, 32 apart.
void DequantiseQ6_K(const uint8_t* in, float* out) {
  const uint8_t* low = in;
  const uint8_t* high = in + 128;
  const uint8_t* scales = in + 192;
  const float d = LoadHalf(in + 208);
  for (int run = 0; run < 16; ++run) {
    const float scale = d * static_cast<float>(static_cast<int8_t>(scales[run]));
    const int half = run / 8, quarter = run % 8 / 2, first = 16 * (run % 2);
    for (int i = 0; i < 16; ++i) {
      const int nibble =
          (low[64 * half + 32 * (quarter % 2) + first + i] >> (4 * (quarter / 2))) & 15;
      const int upper = (high[32 * half + first + i] >> (2 * quarter)) & 3;
      out[16 * run + i] = scale * static_cast<float>((nibble | (upper << 4)) - 32);
    }
  }
}

template <class Block>
void ForEachBlock(WeightType type, int64_t elements, Block block) {
  const WeightTypeInfo& info = Info(type);
  for (int64_t i = 0; i < elements / info.block; ++i) block(i * info.block_bytes, i * info.block);
}

// --- to blocks of 32 -------------------------------------------------------------------------

// 1 / d, 0 for 0; so is the reciprocal that overflows, of a d that half precision rounds to 0.
float Reciprocal(float d) {
  const float inverse = d == 0 ? 0 : 1 / d;
  return std::isinf(inverse) ? 0 : inverse;
}

// Symmetric, 2 * zero levels: the value of largest magnitude becomes level 0.
float SignedScale(const float* in, int zero) {
  float extreme = in[0];
  for (int i = 1; i < kBlock; ++i) {
    if (std::abs(in[i]) > std::abs(extreme)) extreme = in[i];
  }
  return extreme / static_cast<float>(-zero);
}

uint8_t Level(float value, int top) {
  return static_cast<uint8_t>(std::clamp(static_cast<int>(value), 0, top));
}

struct Levels {
  uint8_t level[kBlock];
  float d, m;
};

Levels SymmetricLevels(const float* in, int zero) {
  Levels levels{};
  levels.d = SignedScale(in, zero);
  const float inverse = Reciprocal(levels.d);
  for (int i = 0; i < kBlock; ++i) {
    levels.level[i] = Level(in[i] * inverse + (static_cast<float>(zero) + 0.5f), 2 * zero - 1);
  }
  return levels;
}

Levels RangeLevels(const float* in, int top) {
  Levels levels{};
  const auto [least, most] = std::minmax_element(in, in + kBlock);
  levels.m = *least;
  levels.d = (*most - *least) / static_cast<float>(top);
  const float inverse = Reciprocal(levels.d);
  for (int i = 0; i < kBlock; ++i) {
    levels.level[i] = Level((in[i] - levels.m) * inverse + 0.5f, top);
  }
  return levels;
}

void PackNibbles(const Levels& levels, uint8_t* out) {
  for (int i = 0; i < 16; ++i) {
    out[i] = static_cast<uint8_t>((levels.level[i] & 15) | ((levels.level[16 + i] & 15) << 4));
  }
}

void PackFifthBits(const Levels& levels, uint8_t* out) {
  uint32_t high = 0;
  for (int i = 0; i < kBlock; ++i) high |= uint32_t{levels.level[i]} >> 4 << i;
  std::memcpy(out, &high, sizeof(high));
}

void QuantiseQ4_0(const float* in, uint8_t* out) {
  const Levels levels = SymmetricLevels(in, 8);
  StoreHalf(levels.d, out);
  PackNibbles(levels, out + 2);
}

void QuantiseQ4_1(const float* in, uint8_t* out) {
  const Levels levels = RangeLevels(in, 15);
  StoreHalf(levels.d, out);
  StoreHalf(levels.m, out + 2);
  PackNibbles(levels, out + 4);
}

void QuantiseQ5_0(const float* in, uint8_t* out) {
  const Levels levels = SymmetricLevels(in, 16);
  StoreHalf(levels.d, out);
  PackFifthBits(levels, out + 2);
  PackNibbles(levels, out + 6);
}

void QuantiseQ5_1(const float* in, uint8_t* out) {
  const Levels levels = RangeLevels(in, 31);
  StoreHalf(levels.d, out);
  StoreHalf(levels.m, out + 2);
  PackFifthBits(levels, out + 4);
  PackNibbles(levels, out + 8);
}

void QuantiseQ8_0(const float* in, uint8_t* out) {
  float largest = 0;
  for (int i = 0; i < kBlock; ++i) largest = std::max(largest, std::abs(in[i]));
  const float d = largest / 127;
  const float inverse = Reciprocal(d);
  StoreHalf(d, out);
  for (int i = 0; i < kBlock; ++i) {
    out[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(std::round(in[i] * inverse)));
  }
}

}  // namespace

float HalfToFloat(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16, magnitude = half & 0x7FFF;
  if (magnitude >= 0x7C00) {  // infinite, or NaN with its payload
    return std::bit_cast<float>(sign | 0x7F800000 | (magnitude & 0x3FF) << 13);
  }
  if (magnitude >= 0x400) return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
  const float small = static_cast<float>(magnitude) * 0x1p-24f;  // subnormal, exact
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(small));
}

uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000)
    return static_cast<uint16_t>(sign | 0x7E00 | (magnitude >> 13 & 0x1FF));
  if (magnitude >= 0x477FF000) return static_cast<uint16_t>(sign | 0x7C00);  // 65520 and above
  if (magnitude < 0x38800000) {  // below 2^-14: in units of 2^-24, rounded by the addition
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(sum) - 0x3F000000));
  }
  const uint32_t rebased = magnitude - (112u << 23);
  return static_cast<uint16_t>(sign | ((rebased + 0xFFF + (rebased >> 13 & 1)) >> 13));
}

void DequantiseRow(WeightType type, const uint8_t* in, int64_t elements, float* out) {
  const auto blocks = [&](auto function) {
    ForEachBlock(type, elements, [&](int64_t from, int64_t to) { function(in + from, out + to); });
  };
  switch (type) {
    case WeightType::kF32:
      if (elements > 0) std::memcpy(out, in, static_cast<size_t>(elements) * sizeof(float));
      return;
    case WeightType::kF16:
      for (int64_t i = 0; i < elements; ++i) out[i] = LoadHalf(in + 2 * i);
      return;
    case WeightType::kBF16:
      for (int64_t i = 0; i < elements; ++i) {
        out[i] = std::bit_cast<float>(uint32_t{LoadHalfBits(in + 2 * i)} << 16);
      }
      return;
    case WeightType::kQ4_0:
      return blocks(DequantiseQ4_0);
    case WeightType::kQ4_1:
      return blocks(DequantiseQ4_1);
    case WeightType::kQ5_0:
      return blocks(DequantiseQ5_0);
    case WeightType::kQ5_1:
      return blocks(DequantiseQ5_1);
    case WeightType::kQ8_0:
      return blocks(DequantiseQ8_0);
    case WeightType::kQ2_K:
      return blocks(DequantiseQ2_K);
    case WeightType::kQ3_K:
      return blocks(DequantiseQ3_K);
    case WeightType::kQ4_K:
      return blocks(DequantiseQ4_K);
    case WeightType::kQ5_K:
      return blocks(DequantiseQ5_K);
    case WeightType::kQ6_K:
      return blocks(DequantiseQ6_K);
  }
}

void QuantiseRow(WeightType type, const float* in, int64_t elements, uint8_t* out) {
  const auto blocks = [&](auto function) {
    ForEachBlock(type, elements, [&](int64_t to, int64_t from) { function(in + from, out + to); });
  };
  switch (type) {
    case WeightType::kF32:
      if (elements > 0) std::memcpy(out, in, static_cast<size_t>(elements) * sizeof(float));
      return;
    case WeightType::kF16:
      for (int64_t i = 0; i < elements; ++i) StoreHalf(in[i], out + 2 * i);
      return;
    case WeightType::kBF16:
      for (int64_t i = 0; i < elements; ++i) {
        const BFloat16 value = ToBFloat16(in[i]);
        std::memcpy(out + 2 * i, &value, sizeof(value));
      }
      return;
    case WeightType::kQ4_0:
      return blocks(QuantiseQ4_0);
    case WeightType::kQ4_1:
      return blocks(QuantiseQ4_1);
    case WeightType::kQ5_0:
      return blocks(QuantiseQ5_0);
    case WeightType::kQ5_1:
      return blocks(QuantiseQ5_1);
    case WeightType::kQ8_0:
      return blocks(QuantiseQ8_0);
    default:
      throw Error(ErrorCode::kInvalidArgument,
                  "weft does not write " + std::string(Info(type).name) +
                      "; it writes F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0");
  }
}

}  // namespace weft
