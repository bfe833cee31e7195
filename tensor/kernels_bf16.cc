#include "tensor/kernels_bf16.h"

#include <cpuid.h>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include "tensor/cpu.h"
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

// One product of rows that mix magnitudes, signs and denormals, by both.
bool SameBits(const PairTable& a, const PairTable& b) {
  constexpr int64_t kRows = 3, kIn = 72, kOut = 64;
  std::vector<uint32_t> x(kRows * kIn), w(kIn * kOut);
  uint64_t state = 1;
  const auto next = [&] {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const auto sign = static_cast<uint32_t>(state >> 63) << 15;
    const auto exponent = static_cast<uint32_t>((state >> 40) % 130) << 7;  // up to 2
    return sign | exponent | static_cast<uint32_t>((state >> 33) & 0x7f);
  };
  for (uint32_t& pair : x) pair = next() | next() << 16;
  for (uint32_t& pair : w) pair = next() | next() << 16;
  float by_a[kRows * kOut], by_b[kRows * kOut];
  DenseWork work{.rows = kRows,
                 .in = kIn,
                 .out = kOut,
                 .x = reinterpret_cast<const float*>(x.data()),
                 .w = reinterpret_cast<const float*>(w.data()),
                 .addend = nullptr,
                 .addend_stride = 0,
                 .activation = Activation::kNone,
                 .h = nullptr,
                 .y = by_a};
  a.dense(work, TileUse::kAlone, 0, INT64_MAX);
  work.y = by_b;
  b.dense(work, TileUse::kAlone, 0, INT64_MAX);
  return std::memcmp(by_a, by_b, sizeof(by_a)) == 0;
}

// Also asks the system for the right to use the tile registers, once for all threads.
bool HasTiles() {
  if (!CpuHasAvx512() || !__builtin_cpu_supports("avx512bf16")) return false;
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  if ((d & kAmxBf16) == 0 || (d & kAmxTile) == 0) return false;
  constexpr int kArchReqXcompPerm = 0x1023, kXfeatureXtiledata = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtiledata) == 0 &&
         SameBits(kAmxBlocks, kPortableBlocks);
}

bool HasPairs() {
  return CpuHasAvx512() && __builtin_cpu_supports("avx512bf16") &&
         SameBits(kAvx512Bf16Pairs, kPortablePairs);
}

}  // namespace

SumOrder Bf16SumOrder() {
  static const SumOrder order = HasTiles() ? SumOrder::kBlocks : SumOrder::kPairs;
  return order;
}

const char* Bf16Instruction() {
  static const bool pairs = HasPairs();
  if (BestIsa() < Isa::kAvx512) return "emulated";
  if (Bf16SumOrder() == SumOrder::kBlocks) return "tdpbf16ps";
  return pairs ? "vdpbf16ps" : "emulated";
}

const PairTable& PairsOf(const Context& context) {
  if (Bf16SumOrder() == SumOrder::kBlocks) {
    static constexpr const PairTable* kTables[] = {&kPortableBlocks, &kAvx2Blocks, &kAmxBlocks};
    return *kTables[static_cast<int>(context.isa)];
  }
  static const PairTable* const tables[] = {&kPortablePairs, &kAvx2Pairs,
                                            HasPairs() ? &kAvx512Bf16Pairs : &kAvx512Pairs};
  return *tables[static_cast<int>(context.isa)];
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
  const KernelTable& table = TableOf(context);
  SplitRows(context, (rows + 1) / 2, columns, 2 * kStreamCost, [&](int64_t begin, int64_t end) {
    for (int64_t pair = begin; pair < end; ++pair) {
      const uint16_t* even = Bits(x) + 2 * pair * columns;
      auto* to = reinterpret_cast<uint32_t*>(pairs) + pair * columns;
      if (2 * pair + 1 < rows) {
        table.interleave_halves(columns, even, even + columns, to);
      } else {
        for (int64_t c = 0; c < columns; ++c) to[c] = even[c];
      }
    }
  });
}

void SumRows(const Context& context, int64_t rows, int64_t columns, const BFloat16* x,
             bool accumulate, float* y) {
  const KernelTable& table = TableOf(context);
  Split(context, columns, kPanel, kStreamCost * static_cast<double>(rows),
        [&](int64_t begin, int64_t end) {
          table.sum_rows_bf16(rows, columns, begin, end, Bits(x), accumulate, y);
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

void TransposePairs(const Context& context, int64_t in, int64_t out, const BFloat16* w,
                    BFloat16* wt) {
  const KernelTable& table = TableOf(context);
  Split(context, (in + kPanel - 1) / kPanel, 1, kStreamCost * kPanel * static_cast<double>(out),
        [&](int64_t begin, int64_t end) {
          BFloat16 block[kPanel * kPanel];  // [n][k]; pairs move as floats of the same bits
          for (int64_t panel = begin; panel < end; ++panel) {
            const int64_t k = panel * kPanel;
            const int64_t width = std::min(kPanel, Padded(in) - k);
            const int64_t filled = std::min(kPanel, in - k);
            if (filled < width) std::fill(block, block + kPanel * width, BFloat16{});
            auto* to = reinterpret_cast<uint32_t*>(wt + out * k);
            ForPanels(out, [&](int64_t n, int64_t from_width) {
              const int64_t columns = std::min(kPanel, out - n);
              table.transpose(filled / 2, columns, Pairs(w + in * n + k * from_width), from_width,
                              reinterpret_cast<float*>(block), width / 2);
              for (int64_t c = 0; c < columns; c += 2, to += width) {
                table.interleave_halves(width, Bits(block + c * width),
                                        Bits(block + (c + 1) * width), to);
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
