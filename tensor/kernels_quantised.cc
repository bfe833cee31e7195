#include "tensor/kernels_quantised.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tensor/kernels_split.h"

namespace weft::kernels {
namespace {

constexpr int64_t kGroup = 16;  // outputs whose codes lie together
constexpr int64_t kBlock = kQuantisedBlock;
constexpr int64_t kOutputs = 32;  // of a whole panel

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
  CodeForm form;
  int64_t outputs;  // padded: 16 or 32

  int64_t codes_each() const { return 32 / form.bits; }  // in a word
  int64_t header_bytes() const { return outputs * (form.runs ? 8 : 4); }
  int64_t vectors() const { return kBlock / (2 * codes_each()); }  // pairs of them, a group
  int64_t group_bytes() const { return vectors() * 2 * 64; }
  int64_t block_bytes() const { return header_bytes() + outputs / kGroup * group_bytes(); }
};

struct Place {
  Panel panel;
  int64_t offset;  // of the panel
  int64_t column;  // in the panel
};

int64_t PanelBytes(CodeForm form, int64_t in, int64_t outputs) {
  return in / kBlock * Panel{form, outputs}.block_bytes();
}

Place PlaceOf(CodeForm form, int64_t in, int64_t out, int64_t column) {
  const int64_t panel = column / kOutputs;
  return {.panel = {form, std::min(kOutputs, Padded(out) - panel * kOutputs)},
          .offset = panel * PanelBytes(form, in, kOutputs),
          .column = column % kOutputs};
}

// Byte offset in a block of the word with the codes of an output at k, and the code's bit in it.
struct CodePlace {
  int64_t word, shift;
};
CodePlace PlaceOfCode(const Panel& panel, int64_t column, int64_t k) {
  const int64_t each = panel.codes_each(), o = column % kGroup;
  const int64_t vector = k / (2 * each) * 2 + o / 8, lane = 2 * (o % 8) + k % 2;
  return {panel.header_bytes() + column / kGroup * panel.group_bytes() + vector * 64 + lane * 4,
          k % (2 * each) / 2 * panel.form.bits};
}

uint16_t Half(const std::byte* block, int64_t index) {
  uint16_t half;
  std::memcpy(&half, block + 2 * index, 2);
  return half;
}

// Where the factors of an output's run lie in a block; those of its offset are two rows behind.
int64_t PlaceOfFactor(const Panel& panel, int64_t column, int64_t run) {
  return panel.outputs * (4 + run) + column;
}

float Weight(const Panel& panel, const std::byte* block, int64_t column, int64_t k) {
  const CodePlace place = PlaceOfCode(panel, column, k);
  uint32_t word;
  std::memcpy(&word, block + place.word, 4);
  const float code = panel.form.bits == 4
                         ? static_cast<float>(word >> place.shift & 15)
                         : static_cast<float>(static_cast<int8_t>(word >> place.shift & 255));
  float scale = FromHalf(Half(block, column)),
        offset = FromHalf(Half(block, panel.outputs + column));
  if (panel.form.runs) {
    const int64_t at = PlaceOfFactor(panel, column, k / kQuantisedRun);
    scale *= static_cast<float>(static_cast<int8_t>(block[at]));
    offset *= static_cast<float>(static_cast<int8_t>(block[at + 2 * panel.outputs]));
  }
  return __builtin_fmaf(scale, code, offset);
}

// A panel as pair panels hold it: pairs [K/2], `stride` apart.
void Unpack(const QuantisedWork& work, int64_t stride, uint32_t* pairs) {
  const Panel panel{work.form, work.outputs};
  const std::byte* block = work.w;
  for (int64_t b = 0; b < work.in / kBlock; ++b, block += panel.block_bytes()) {
    for (int64_t k = 0; k < kBlock; k += 2, pairs += stride) {
      for (int64_t column = 0; column < work.outputs; ++column) {
        const BFloat16 even = ToBFloat16(Weight(panel, block, column, k));
        const BFloat16 odd = ToBFloat16(Weight(panel, block, column, k + 1));
        pairs[column] = even.bits | uint32_t{odd.bits} << 16;
      }
    }
  }
}

}  // namespace

int64_t QuantisedBytes(CodeForm form, int64_t in, int64_t out) {
  const int64_t whole = out / kOutputs;
  const int64_t rest = Padded(out) - whole * kOutputs;
  return whole * PanelBytes(form, in, kOutputs) + (rest > 0 ? PanelBytes(form, in, rest) : 0);
}

void SetQuantisedColumn(CodeForm form, int64_t in, int64_t out, int64_t column,
                        const QuantisedColumn& weights, std::byte* w) {
  const Place place = PlaceOf(form, in, out, column);
  const Panel& panel = place.panel;
  const int64_t each = panel.codes_each();
  const uint32_t mask = form.bits == 4 ? 15 : 255;
  const int64_t bits = form.bits;
  const int8_t* codes = weights.codes;
  std::byte* block = w + place.offset;
  for (int64_t b = 0; b < in / kBlock; ++b, block += panel.block_bytes(), codes += kBlock) {
    std::memcpy(block + 2 * place.column, weights.scales + b, 2);
    std::memcpy(block + 2 * (panel.outputs + place.column), weights.offsets + b, 2);
    for (int64_t run = 0; form.runs && run < 2; ++run) {
      const int64_t at = PlaceOfFactor(panel, place.column, run);
      block[at] = static_cast<std::byte>(weights.factors[2 * b + run]);
      block[at + 2 * panel.outputs] = static_cast<std::byte>(weights.offset_factors[2 * b + run]);
    }
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

void GetQuantisedColumn(CodeForm form, int64_t in, int64_t out, int64_t column, const std::byte* w,
                        BFloat16* x) {
  const Place place = PlaceOf(form, in, out, column);
  const std::byte* block = w + place.offset;
  for (int64_t b = 0; b < in / kBlock; ++b, block += place.panel.block_bytes()) {
    for (int64_t k = 0; k < kBlock; ++k) {
      x[b * kBlock + k] = ToBFloat16(Weight(place.panel, block, place.column, k));
    }
  }
}

void DenseQuantised(const Context& context, CodeForm form, int64_t rows, int64_t in, int64_t out,
                    const BFloat16* x, const std::byte* w, const float* addend,
                    int64_t addend_stride, float* y) {
  const PairTable& table = PairsOf(context);
  const auto work_on = [&](int64_t panel) {
    const int64_t column = panel * kOutputs;
    const int64_t outputs = std::min(kOutputs, Padded(out) - column);
    return QuantisedWork{.form = form,
                         .rows = rows,
                         .in = in,
                         .outputs = outputs,
                         .columns = std::min(outputs, out - column),
                         .x = reinterpret_cast<const uint32_t*>(x),
                         .w = w + panel * PanelBytes(form, in, kOutputs),
                         .addend = addend == nullptr ? nullptr : addend + column,
                         .addend_stride = addend_stride,
                         .y = y + column,
                         .y_stride = out};
  };
  auto read = [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) table.dense_quantised(work_on(panel));
  };
  auto unpack = [&](int64_t begin, int64_t end) {  // panels of pairs
    Tensor memory = Tensor::Empty({in / 2 * kPanel * 4}, DType::kUInt8);
    auto* const pairs = reinterpret_cast<uint32_t*>(memory.raw());
    for (int64_t wide = begin; wide < end; ++wide) {
      const int64_t column = wide * kPanel, stride = std::min(kPanel, Padded(out) - column);
      for (int64_t part = 0; part < stride; part += kOutputs) {
        (table.unpack_quantised != nullptr ? table.unpack_quantised : Unpack)(
            work_on((column + part) / kOutputs), stride, pairs + part);
      }
      table.dense({.rows = rows,
                   .in = in / 2,
                   .out = std::min(kPanel, out - column),
                   .x = reinterpret_cast<const float*>(x),
                   .w = reinterpret_cast<const float*>(pairs),
                   .addend = addend == nullptr ? nullptr : addend + column,
                   .addend_stride = addend_stride,
                   .activation = Activation::kNone,
                   .h = nullptr,
                   .y = y + column,
                   .y_stride = out},
                  TileUse::kAlone, 0, INT64_MAX);
    }
  };
  // Few rows are multiplied by codes as they are read; for more, a panel is unpacked once.
  constexpr int64_t kFewRows = 4;
  const bool few = rows <= kFewRows && table.dense_quantised != nullptr;
  const int64_t panels = (out + kOutputs - 1) / kOutputs, wide = (out + kPanel - 1) / kPanel;
  const bool share = WorthSharing(context, ProductCost(rows, in, out));
  if (few && share) {
    context.pool->ParallelFor(panels, 1, read);
  } else if (few) {
    read(0, panels);
  } else if (share) {
    context.pool->ParallelForDynamic(wide, 1, unpack);
  } else {
    unpack(0, wide);
  }
}

}  // namespace weft::kernels
