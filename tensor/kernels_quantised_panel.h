// Where the parts of quantised weights lie (kernels_quantised.h), for the kernels that read them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensor/kernels_quantised.h"
#include "tensor/kernels_split.h"

namespace weft::kernels {

constexpr int64_t kQuantisedGroup = 16;    // outputs whose codes lie together
constexpr int64_t kQuantisedOutputs = 32;  // of a whole panel

// Of half precision; exact.
inline float FromHalf(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16, magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude << 13));
  // Scaling by 2^112 mends the exponent, denormals too.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(scaled));
}

struct QuantisedPanel {
  CodeForm form;
  int64_t outputs;  // padded: 16 or 32

  int64_t codes_each() const { return 32 / form.bits; }  // in a word
  int64_t header_bytes() const { return outputs * (form.runs ? 8 : 4); }
  int64_t vectors() const { return kQuantisedBlock / (2 * codes_each()); }  // pairs, a group
  int64_t group_bytes() const { return vectors() * 2 * 64; }
  int64_t block_bytes() const { return header_bytes() + outputs / kQuantisedGroup * group_bytes(); }
  int64_t bytes(int64_t in) const { return in / kQuantisedBlock * block_bytes(); }

  // Byte offset in a block of the word with the codes of an output at k, and the code's bit in it.
  struct CodePlace {
    int64_t word, shift;
  };
  CodePlace PlaceOfCode(int64_t column, int64_t k) const {
    const int64_t each = codes_each(), o = column % kQuantisedGroup;
    const int64_t vector = k / (2 * each) * 2 + o / 8, lane = 2 * (o % 8) + k % 2;
    return {header_bytes() + column / kQuantisedGroup * group_bytes() + vector * 64 + lane * 4,
            k % (2 * each) / 2 * form.bits};
  }
  // Of an output's factor for a run; those of its offset are two rows behind.
  int64_t PlaceOfFactor(int64_t column, int64_t run) const { return outputs * (4 + run) + column; }

  int32_t Code(const std::byte* block, int64_t column, int64_t k) const {
    const CodePlace place = PlaceOfCode(column, k);
    uint32_t word;
    std::memcpy(&word, block + place.word, 4);
    return form.bits == 4 ? static_cast<int32_t>(word >> place.shift & 15)
                          : static_cast<int8_t>(word >> place.shift & 255);
  }
  struct Factors {
    float scale, offset;
  };
  Factors FactorsOf(const std::byte* block, int64_t column, int64_t run) const {
    const auto half = [&](int64_t index) {
      uint16_t bits;
      std::memcpy(&bits, block + 2 * index, 2);
      return FromHalf(bits);
    };
    Factors factors{half(column), half(outputs + column)};
    if (form.runs) {
      const int64_t at = PlaceOfFactor(column, run);
      factors.scale *= static_cast<float>(static_cast<int8_t>(block[at]));
      factors.offset *= static_cast<float>(static_cast<int8_t>(block[at + 2 * outputs]));
    }
    return factors;
  }
};

// The number-th panel of a matrix: its first output, those of it that exist, and where it begins.
struct QuantisedPanelOf {
  QuantisedPanel panel;
  int64_t column, columns;
  int64_t offset;

  QuantisedPanelOf(CodeForm form, int64_t in, int64_t out, int64_t number)
      : panel{form, std::min(kQuantisedOutputs, Padded(out) - number * kQuantisedOutputs)},
        column(number * kQuantisedOutputs),
        columns(std::min(panel.outputs, out - column)),
        offset(number * QuantisedPanel{form, kQuantisedOutputs}.bytes(in)) {}
};
inline int64_t QuantisedPanels(int64_t out) {
  return (out + kQuantisedOutputs - 1) / kQuantisedOutputs;
}

}  // namespace weft::kernels
