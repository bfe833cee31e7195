#include "tensor/kernels_quantised.h"

#include <algorithm>
#include <cstring>

#include "tensor/kernels_quantised_panel.h"

namespace weft::kernels {
namespace {

constexpr int64_t kBlock = kQuantisedBlock;
constexpr int64_t kOutputs = kQuantisedOutputs;

struct Place {
  QuantisedPanelOf of;
  int64_t column;  // in the panel

  Place(CodeForm form, int64_t in, int64_t out, int64_t n)
      : of(form, in, out, n / kOutputs), column(n % kOutputs) {}
};

float Weight(const QuantisedPanel& panel, const std::byte* block, int64_t column, int64_t k) {
  const auto [scale, offset] = panel.FactorsOf(block, column, k / kQuantisedRun);
  return __builtin_fmaf(scale, static_cast<float>(panel.Code(block, column, k)), offset);
}

// A panel as pair panels hold it: pairs [K/2], `stride` apart.
void Unpack(const QuantisedWork& work, int64_t stride, uint32_t* pairs) {
  const QuantisedPanel panel{work.form, work.outputs};
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
  const int64_t panels = QuantisedPanels(out);
  if (panels == 0) return 0;
  const QuantisedPanelOf last(form, in, out, panels - 1);
  return last.offset + last.panel.bytes(in);
}

void SetQuantisedColumn(CodeForm form, int64_t in, int64_t out, int64_t column,
                        const QuantisedColumn& weights, std::byte* w) {
  const Place place(form, in, out, column);
  const QuantisedPanel& panel = place.of.panel;
  const int64_t each = panel.codes_each();
  const uint32_t mask = form.bits == 4 ? 15 : 255;
  const int64_t bits = form.bits;
  const int8_t* codes = weights.codes;
  std::byte* block = w + place.of.offset;
  for (int64_t b = 0; b < in / kBlock; ++b, block += panel.block_bytes(), codes += kBlock) {
    std::memcpy(block + 2 * place.column, weights.scales + b, 2);
    std::memcpy(block + 2 * (panel.outputs + place.column), weights.offsets + b, 2);
    for (int64_t run = 0; form.runs && run < 2; ++run) {
      const int64_t at = panel.PlaceOfFactor(place.column, run);
      block[at] = static_cast<std::byte>(weights.factors[2 * b + run]);
      block[at + 2 * panel.outputs] = static_cast<std::byte>(weights.offset_factors[2 * b + run]);
    }
    for (int64_t first = 0; first < kBlock; first += 2 * each) {
      uint32_t even = 0, odd = 0;
      for (int64_t i = 0; i < each; ++i) {
        even |= (static_cast<uint32_t>(codes[first + 2 * i]) & mask) << (bits * i);
        odd |= (static_cast<uint32_t>(codes[first + 2 * i + 1]) & mask) << (bits * i);
      }
      std::memcpy(block + panel.PlaceOfCode(place.column, first).word, &even, 4);
      std::memcpy(block + panel.PlaceOfCode(place.column, first + 1).word, &odd, 4);
    }
  }
}

void GetQuantisedColumn(CodeForm form, int64_t in, int64_t out, int64_t column, const std::byte* w,
                        BFloat16* x) {
  const Place place(form, in, out, column);
  const QuantisedPanel& panel = place.of.panel;
  const std::byte* block = w + place.of.offset;
  for (int64_t b = 0; b < in / kBlock; ++b, block += panel.block_bytes()) {
    for (int64_t k = 0; k < kBlock; ++k) {
      x[b * kBlock + k] = ToBFloat16(Weight(panel, block, place.column, k));
    }
  }
}

void DenseQuantised(const Context& context, CodeForm form, int64_t rows, int64_t in, int64_t out,
                    const BFloat16* x, const std::byte* w, const float* addend,
                    int64_t addend_stride, float* y) {
  const PairTable& table = PairsOf(context);
  const auto work_on = [&](int64_t panel) {
    const QuantisedPanelOf of(form, in, out, panel);
    return QuantisedWork{.form = form,
                         .rows = rows,
                         .in = in,
                         .outputs = of.panel.outputs,
                         .columns = of.columns,
                         .x = reinterpret_cast<const uint32_t*>(x),
                         .w = w + of.offset,
                         .addend = addend == nullptr ? nullptr : addend + of.column,
                         .addend_stride = addend_stride,
                         .y = y + of.column,
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
  const int64_t panels = QuantisedPanels(out), wide = (out + kPanel - 1) / kPanel;
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
