#include "tensor/kernels_eight_bits.h"

#include <cmath>
#include <limits>

#include "tensor/kernels_quantised_panel.h"

namespace weft::kernels {
namespace {

constexpr int64_t kBlock = kQuantisedBlock;

// Where the k-th code of a block lies, in the order in which words of weights hold theirs: four
// codes of even k and four of odd k to eight bytes.
int64_t PlaceOfRounded(int bits, int64_t k) {
  const int64_t each = bits == 4 ? 16 : 8, first = k / each * each;
  const int64_t odd = k % 2, i = k % each / 2;
  return bits == 4 ? first + i % 2 * 8 + odd * 4 + i / 2 : first + odd * 4 + i;
}

void Round(const EightBitRows& to, const uint16_t* x, int64_t begin, int64_t end) {
  const int64_t runs = to.form.runs ? 2 : 1, blocks = to.in / kBlock;
  const int32_t zero = to.form.bits == 4 ? 0 : 128;
  for (int64_t at = begin * blocks; at < end * blocks; ++at) {
    float value[kBlock], largest = 0;
    bool finite = true;
    for (int64_t k = 0; k < kBlock; ++k) {
      value[k] = ToFloat(BFloat16{x[at * kBlock + k]});
      finite = finite && std::isfinite(value[k]);
      largest = std::max(largest, std::abs(value[k]));
    }
    float scale = largest / 127, inverse = 127 / largest;
    if (!finite || largest < 0x1p-100f) scale = inverse = 0;
    int32_t sums[2] = {0, 0};
    for (int64_t k = 0; k < kBlock; ++k) {
      const int32_t code =
          inverse == 0 ? 0 : static_cast<int32_t>(std::nearbyint(value[k] * inverse));
      to.codes[at * kBlock + PlaceOfRounded(to.form.bits, k)] = static_cast<int8_t>(code + zero);
      sums[k * runs / kBlock] += code;
    }
    if (!finite) scale = std::numeric_limits<float>::quiet_NaN();
    to.scales[at] = scale;
    for (int64_t run = 0; run < runs; ++run) {
      to.sums[at * runs + run] = scale * static_cast<float>(sums[run]);
    }
  }
}

void Dense(const EightBitWork& work) {
  const EightBitRows& x = work.x;
  const QuantisedPanel panel{x.form, work.outputs};
  const int64_t runs = x.form.runs ? 2 : 1, run_length = kBlock / runs, blocks = x.in / kBlock;
  const int32_t zero = x.form.bits == 4 ? 0 : 128;
  for (int64_t row = 0; row < x.rows; ++row) {
    for (int64_t column = 0; column < work.columns; ++column) {
      float sums[2] = {0, 0}, offsets = 0;
      for (int64_t b = 0; b < blocks; ++b) {
        const std::byte* const block = work.w + b * panel.block_bytes();
        const int64_t at = row * blocks + b;
        for (int64_t run = 0; run < runs; ++run) {
          int32_t products[2] = {0, 0};
          for (int64_t k = run * run_length; k < (run + 1) * run_length; ++k) {
            const int8_t byte = x.codes[at * kBlock + PlaceOfRounded(x.form.bits, k)];
            const int32_t code = zero == 0 ? byte : static_cast<uint8_t>(byte) - zero;
            products[k % 2] += panel.Code(block, column, k) * code;
          }
          const auto [scale, offset] = panel.FactorsOf(block, column, run);
          const float both = scale * x.scales[at];
          for (int64_t odd = 0; odd < 2; ++odd) {
            sums[odd] = __builtin_fmaf(both, static_cast<float>(products[odd]), sums[odd]);
          }
          offsets = __builtin_fmaf(offset, x.sums[at * runs + run], offsets);
        }
      }
      float y = (sums[0] + sums[1]) + offsets;
      if (work.addend != nullptr) y += work.addend[row * work.addend_stride + column];
      work.y[row * work.y_stride + column] = y;
    }
  }
}

constexpr EightBitTable kPlainEightBits = {.round = Round, .dense = Dense};

const EightBitTable& EightBitsOf(const Context& context) {
  static const bool vnni = __builtin_cpu_supports("avx512vnni");
  return context.isa == Isa::kAvx512 && vnni ? kVnniEightBits : kPlainEightBits;
}

}  // namespace

void DenseEightBits(const Context& context, CodeForm form, int64_t rows, int64_t in, int64_t out,
                    const BFloat16* x, const std::byte* w, const float* addend,
                    int64_t addend_stride, float* y) {
  const EightBitTable& table = EightBitsOf(context);
  const int64_t blocks = rows * in / kBlock;
  Tensor codes = Tensor::Empty({rows * in}, DType::kUInt8);
  Tensor scales = Tensor::Empty({blocks}), sums = Tensor::Empty({form.runs ? 2 * blocks : blocks});
  const EightBitRows rounded{.form = form,
                             .rows = rows,
                             .in = in,
                             .codes = reinterpret_cast<int8_t*>(codes.raw()),
                             .scales = scales.data<float>().data(),
                             .sums = sums.data<float>().data()};
  SplitRows(context, rows, in, kStreamCost, [&](int64_t begin, int64_t end) {
    table.round(rounded, reinterpret_cast<const uint16_t*>(x), begin, end);
  });
  const int64_t panels = QuantisedPanels(out);
  Split(context, panels, 1, ProductCost(rows, in, kQuantisedOutputs),
        [&](int64_t begin, int64_t end) {
          for (int64_t number = begin; number < end; ++number) {
            const QuantisedPanelOf of(form, in, out, number);
            table.dense({.x = rounded,
                         .outputs = of.panel.outputs,
                         .columns = of.columns,
                         .w = w + of.offset,
                         .addend = addend == nullptr ? nullptr : addend + of.column,
                         .addend_stride = addend_stride,
                         .y = y + of.column,
                         .y_stride = out});
          }
        });
}

}  // namespace weft::kernels
