#include "tensor/kernels_bf16.h"

#include <cstring>
#include <vector>

#include "tensor/kernels_split.h"

namespace weft::kernels {
namespace {

uint16_t* Bits(BFloat16* p) {
  return reinterpret_cast<uint16_t*>(p);
}
const uint16_t* Bits(const BFloat16* p) {
  return reinterpret_cast<const uint16_t*>(p);
}
// A pair of bf16 in the place of a float: the tiles only move it.
const float* Pairs(const BFloat16* p) {
  return reinterpret_cast<const float*>(p);
}

bool InstructionIsThere() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512bf16");
}

// One product of rows that mix magnitudes, signs and denormals, by instruction and by emulation.
bool InstructionKeepsTheLaw() {
  constexpr int64_t kIn = 64, kOut = 64;
  std::vector<uint32_t> x(kIn), w(kIn * kOut);
  uint64_t state = 1;
  const auto next = [&] {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const auto sign = static_cast<uint32_t>(state >> 63) << 15;
    const auto exponent = static_cast<uint32_t>((state >> 40) % 130) << 7;  // up to 2
    return sign | exponent | static_cast<uint32_t>((state >> 33) & 0x7f);
  };
  for (uint32_t& pair : x) pair = next() | next() << 16;
  for (uint32_t& pair : w) pair = next() | next() << 16;
  float by_instruction[kOut], emulated[kOut];
  DenseWork work{.rows = 1,
                 .in = kIn,
                 .out = kOut,
                 .x = reinterpret_cast<const float*>(x.data()),
                 .w = reinterpret_cast<const float*>(w.data()),
                 .addend = nullptr,
                 .addend_stride = 0,
                 .activation = Activation::kNone,
                 .h = nullptr,
                 .y = by_instruction};
  kAvx512Bf16Pairs.dense(work, false, 0, INT64_MAX);
  work.y = emulated;
  kAvx512Pairs.dense(work, false, 0, INT64_MAX);
  return std::memcmp(by_instruction, emulated, sizeof(emulated)) == 0;
}

}  // namespace

bool HasBf16Products() {
  static const bool has = InstructionIsThere() && InstructionKeepsTheLaw();
  return has;
}

const PairTable& PairsOf(const Context& context) {
  switch (context.isa) {
    case Isa::kPortable:
      return kPortablePairs;
    case Isa::kAvx2:
      return kAvx2Pairs;
    case Isa::kAvx512:
      break;
  }
  return HasBf16Products() ? kAvx512Bf16Pairs : kAvx512Pairs;
}

void Round(const Context& context, int64_t count, const float* x, BFloat16* y) {
  const KernelTable& table = TableOf(context);
  SplitElements(context, count, kStreamCost, [&](int64_t begin, int64_t end) {
    table.round(end - begin, x + begin, Bits(y) + begin);
  });
}

void Widen(const Context& context, int64_t count, const BFloat16* x, float* y) {
  const KernelTable& table = TableOf(context);
  SplitElements(context, count, kStreamCost, [&](int64_t begin, int64_t end) {
    table.widen(end - begin, Bits(x) + begin, y + begin);
  });
}

void InterleaveRows(const Context& context, int64_t rows, int64_t columns, const BFloat16* x,
                    BFloat16* pairs) {
  SplitRows(context, (rows + 1) / 2, columns, 2 * kStreamCost, [&](int64_t begin, int64_t end) {
    for (int64_t pair = begin; pair < end; ++pair) {
      const uint16_t* even = Bits(x) + 2 * pair * columns;
      const uint16_t* odd = even + columns;
      uint16_t* to = Bits(pairs) + 2 * pair * columns;
      if (2 * pair + 1 < rows) {
        for (int64_t c = 0; c < columns; ++c) {
          to[2 * c] = even[c];
          to[2 * c + 1] = odd[c];
        }
      } else {
        for (int64_t c = 0; c < columns; ++c) {
          to[2 * c] = even[c];
          to[2 * c + 1] = 0;
        }
      }
    }
  });
}

void PackPairs(const Context& context, int64_t in, int64_t out, const float* panels, BFloat16* w) {
  const KernelTable& table = TableOf(context);
  Split(context, (out + kPanel - 1) / kPanel, 1, kStreamCost * kPanel * static_cast<double>(in),
        [&](int64_t begin, int64_t end) {
          for (int64_t panel = begin; panel < end; ++panel) {
            const int64_t n = panel * kPanel;
            const int64_t width = std::min(kPanel, Padded(out) - n);
            const float* from = panels + in * n;
            auto* to = reinterpret_cast<uint32_t*>(w + in * n);
            for (int64_t k = 0; k < in; k += 2, to += width) {
              table.interleave(width, from + k * width, from + (k + 1) * width, to);
            }
          }
        });
}

void PackTransposedPairs(const Context& context, int64_t in, int64_t out, const float* panels,
                         BFloat16* wt) {
  const KernelTable& table = TableOf(context);
  Split(context, (in + kPanel - 1) / kPanel, 1, kStreamCost * kPanel * static_cast<double>(out),
        [&](int64_t begin, int64_t end) {
          float block[kPanel * kPanel];  // [n][k]
          for (int64_t panel = begin; panel < end; ++panel) {
            const int64_t k = panel * kPanel;
            const int64_t width = std::min(kPanel, Padded(in) - k);
            const int64_t filled = std::min(kPanel, in - k);
            if (filled < width) std::fill(block, block + kPanel * width, 0.0f);
            auto* to = reinterpret_cast<uint32_t*>(wt + out * k);
            ForPanels(out, [&](int64_t n, int64_t from_width) {
              const int64_t columns = std::min(kPanel, out - n);
              table.transpose(filled, columns, panels + in * n + k * from_width, from_width, block,
                              width);
              for (int64_t c = 0; c < columns; c += 2, to += width) {
                table.interleave(width, block + c * width, block + (c + 1) * width, to);
              }
            });
          }
        });
}

void DenseBf16(const Context& context, int64_t rows, int64_t in, int64_t out, const BFloat16* x,
               const BFloat16* w, const float* addend, int64_t addend_stride, float* y,
               int64_t y_stride) {
  ShareDense(context, PairsOf(context),
             {.rows = rows,
              .in = in / 2,
              .out = out,
              .x = Pairs(x),
              .w = Pairs(w),
              .addend = addend,
              .addend_stride = addend_stride,
              .activation = Activation::kNone,
              .h = nullptr,
              .y = y,
              .y_stride = y_stride});
}

void DenseBf16WeightGradient(const Context& context, int64_t rows, int64_t in, int64_t out,
                             const BFloat16* x_pairs, const BFloat16* d_z_pairs, bool accumulate,
                             float* d_w) {
  ShareWeightGradient(context, PairsOf(context),
                      {.rows = (rows + 1) / 2,
                       .in = in,
                       .out = out,
                       .x = Pairs(x_pairs),
                       .d_z = Pairs(d_z_pairs),
                       .accumulate = accumulate,
                       .d_w = d_w});
}

}  // namespace weft::kernels
