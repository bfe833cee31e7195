#include "tensor/kernels_quantised.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tensor/kernels_split.h"

namespace weft::kernels {
namespace {

constexpr int64_t kGroup = 16;  // outputs whose codes lie together
constexpr int64_t kBlock = kQuantisedBlock;

// Of half precision; exact.
float FromHalf(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16, magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude << 13));
  // Scaling by 2^112 mends the exponent, denormals too.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(scaled));
}

// Where the parts of a panel lie.
struct Panel {
  CodeWidth width;
  int64_t outputs;  // padded: 16, 32, 48 or 64

  int64_t codes_each() const { return width == CodeWidth::k4 ? 8 : 4; }  // in a word
  int64_t vectors() const { return kBlock / (2 * codes_each()); }        // pairs of them, a group
  int64_t group_bytes() const { return vectors() * 2 * 64; }
  int64_t block_bytes() const { return outputs * 4 + outputs / kGroup * group_bytes(); }
};

struct Place {
  Panel panel;
  int64_t offset;  // of the panel
  int64_t column;  // in the panel
};

int64_t PanelBytes(CodeWidth width, int64_t in, int64_t outputs) {
  return in / kBlock * Panel{width, outputs}.block_bytes();
}

Place PlaceOf(CodeWidth width, int64_t in, int64_t out, int64_t column) {
  const int64_t panel = column / kPanel;
  return {.panel = {width, std::min(kPanel, Padded(out) - panel * kPanel)},
          .offset = panel * PanelBytes(width, in, kPanel),
          .column = column % kPanel};
}

// Byte offset in a block of the word with the codes of an output at k, and the code's bit in it.
struct CodePlace {
  int64_t word, shift;
};
CodePlace PlaceOfCode(const Panel& panel, int64_t column, int64_t k) {
  const int64_t each = panel.codes_each(), o = column % kGroup;
  const int64_t vector = k / (2 * each) * 2 + o / 8, lane = 2 * (o % 8) + k % 2;
  return {panel.outputs * 4 + column / kGroup * panel.group_bytes() + vector * 64 + lane * 4,
          k % (2 * each) / 2 * static_cast<int64_t>(panel.width)};
}

uint16_t Half(const std::byte* block, int64_t index) {
  uint16_t half;
  std::memcpy(&half, block + 2 * index, 2);
  return half;
}

float Weight(const Panel& panel, const std::byte* block, int64_t column, int64_t k) {
  const CodePlace place = PlaceOfCode(panel, column, k);
  uint32_t word;
  std::memcpy(&word, block + place.word, 4);
  const float code = panel.width == CodeWidth::k4
                         ? static_cast<float>(word >> place.shift & 15)
                         : static_cast<float>(static_cast<int8_t>(word >> place.shift & 255));
  return __builtin_fmaf(FromHalf(Half(block, column)), code,
                        FromHalf(Half(block, panel.outputs + column)));
}

// A panel as pair panels hold it: pairs [K/2][outputs].
void Unpack(const QuantisedWork& work, uint32_t* pairs) {
  const Panel panel{work.width, work.outputs};
  const std::byte* block = work.w;
  for (int64_t b = 0; b < work.in / kBlock; ++b, block += panel.block_bytes()) {
    for (int64_t k = 0; k < kBlock; k += 2, pairs += work.outputs) {
      for (int64_t column = 0; column < work.outputs; ++column) {
        const BFloat16 even = ToBFloat16(Weight(panel, block, column, k));
        const BFloat16 odd = ToBFloat16(Weight(panel, block, column, k + 1));
        pairs[column] = even.bits | uint32_t{odd.bits} << 16;
      }
    }
  }
}

}  // namespace

int64_t QuantisedBytes(CodeWidth width, int64_t in, int64_t out) {
  const int64_t whole = out / kPanel;
  const int64_t rest = Padded(out) - whole * kPanel;
  return whole * PanelBytes(width, in, kPanel) + (rest > 0 ? PanelBytes(width, in, rest) : 0);
}

void SetQuantisedColumn(CodeWidth width, int64_t in, int64_t out, int64_t column,
                        const int8_t* codes, const uint16_t* scales, const uint16_t* offsets,
                        std::byte* w) {
  const Place place = PlaceOf(width, in, out, column);
  const Panel& panel = place.panel;
  const int64_t each = panel.codes_each();
  const uint32_t mask = width == CodeWidth::k4 ? 15 : 255;
  const auto bits = static_cast<int64_t>(width);
  std::byte* block = w + place.offset;
  for (int64_t b = 0; b < in / kBlock; ++b, block += panel.block_bytes(), codes += kBlock) {
    std::memcpy(block + 2 * place.column, scales + b, 2);
    std::memcpy(block + 2 * (panel.outputs + place.column), offsets + b, 2);
    for (int64_t first = 0; first < kBlock; first += 2 * each) {
      uint32_t even = 0, odd = 0;
      for (int64_t i = 0; i < each; ++i) {
        even |= (static_cast<uint32_t>(codes[first + 2 * i]) & mask) << (bits * i);
        odd |= (static_cast<uint32_t>(codes[first + 2 * i + 1]) & mask) << (bits * i);
      }
      std::memcpy(block + PlaceOfCode(panel, place.column, first).word, &even, 4);
      std::memcpy(block + PlaceOfCode(panel, place.column, first + 1).word, &odd, 4);
    }
  }
}

void GetQuantisedColumn(CodeWidth width, int64_t in, int64_t out, int64_t column,
                        const std::byte* w, BFloat16* x) {
  const Place place = PlaceOf(width, in, out, column);
  const std::byte* block = w + place.offset;
  for (int64_t b = 0; b < in / kBlock; ++b, block += place.panel.block_bytes()) {
    for (int64_t k = 0; k < kBlock; ++k) {
      x[b * kBlock + k] = ToBFloat16(Weight(place.panel, block, place.column, k));
    }
  }
}

void DenseQuantised(const Context& context, CodeWidth width, int64_t rows, int64_t in, int64_t out,
                    const BFloat16* x, const std::byte* w, const float* addend,
                    int64_t addend_stride, float* y) {
  const PairTable& table = PairsOf(context);
  // Few rows are multiplied by codes as they are read, in halves of panels that balance over
  // threads; for more, a panel is unpacked once.
  constexpr int64_t kFewRows = 4, kGroups = 2;
  const bool few = rows <= kFewRows && table.dense_quantised != nullptr;
  const auto work_on = [&](int64_t panel) {
    const int64_t column = panel * kPanel;
    const int64_t outputs = std::min(kPanel, Padded(out) - column);
    return QuantisedWork{.width = width,
                         .rows = rows,
                         .in = in,
                         .outputs = outputs,
                         .columns = std::min(outputs, out - column),
                         .group = 0,
                         .group_end = outputs / kGroup,
                         .x = reinterpret_cast<const uint32_t*>(x),
                         .w = w + panel * PanelBytes(width, in, kPanel),
                         .addend = addend == nullptr ? nullptr : addend + column,
                         .addend_stride = addend_stride,
                         .y = y + column,
                         .y_stride = out};
  };
  auto read = [&](int64_t begin, int64_t end) {  // half panels
    for (int64_t half = begin; half < end; ++half) {
      QuantisedWork work = work_on(half / 2);
      work.group = half % 2 * kGroups;
      work.group_end = std::min(work.group + kGroups, work.group_end);
      if (work.group < work.group_end) table.dense_quantised(work);
    }
  };
  auto unpack = [&](int64_t begin, int64_t end) {  // panels
    Tensor memory = Tensor::Empty({in / 2 * kPanel * 4}, DType::kUInt8);
    auto* const pairs = reinterpret_cast<uint32_t*>(memory.raw());
    for (int64_t panel = begin; panel < end; ++panel) {
      const QuantisedWork work = work_on(panel);
      (table.unpack_quantised != nullptr ? table.unpack_quantised : Unpack)(work, pairs);
      table.dense({.rows = rows,
                   .in = in / 2,
                   .out = work.columns,
                   .x = reinterpret_cast<const float*>(x),
                   .w = reinterpret_cast<const float*>(pairs),
                   .addend = work.addend,
                   .addend_stride = addend_stride,
                   .activation = Activation::kNone,
                   .h = nullptr,
                   .y = work.y,
                   .y_stride = out},
                  false, 0, INT64_MAX);
    }
  };
  const int64_t panels = (out + kPanel - 1) / kPanel;
  const bool share = WorthSharing(context, ProductCost(rows, in, out));
  if (few && share) {
    context.pool->ParallelFor(2 * panels, 1, read);
  } else if (few) {
    read(0, 2 * panels);
  } else if (share) {
    context.pool->ParallelForDynamic(panels, 1, unpack);
  } else {
    unpack(0, panels);
  }
}

}  // namespace weft::kernels
