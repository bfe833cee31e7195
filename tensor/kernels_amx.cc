// Compiled for AVX-512 with bf16 and its tile registers: 16 rows of 16 sums, and products that add
// a block of 16 pairs to them at once. Pair panels lie in memory as the instruction reads them.
// What does not fill a tile is copied into one of zeros.
#include <cstring>

#include "tensor/kernels_avx512.h"
#include "tensor/kernels_avx512_codes.h"
#include "tensor/kernels_pairs.h"

namespace weft::kernels {
namespace {

constexpr int64_t kTile = 16, kPanel = 64;
constexpr int64_t kBlockRows = 32, kBlockColumns = 32;  // of four tiles of sums

// Tiles 0 to 3 hold sums, 4 and 5 rows of x, 5 to 7 or 6 and 7 columns of w.
class TileScope {
 public:
  // Sums of up to 16 rows by 64 columns, in tiles side by side.
  static TileScope Wide(int64_t rows) { return TileScope({rows, rows, rows, rows, rows}); }
  // Sums of 17 to 32 rows by 32 columns.
  static TileScope Square(int64_t rows) {
    return TileScope({kTile, kTile, rows - kTile, rows - kTile, kTile, rows - kTile});
  }
  ~TileScope() { _tile_release(); }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;

 private:
  explicit TileScope(const int64_t (&rows)[5]) { Load(rows, 5); }
  explicit TileScope(const int64_t (&rows)[6]) { Load(rows, 6); }
  static void Load(const int64_t* rows, int count) {
    struct alignas(64) {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t column_bytes[16] = {};
      uint8_t rows[16] = {};
    } config;
    for (int tile = 0; tile < 8; ++tile) {
      config.column_bytes[tile] = 64;
      config.rows[tile] = static_cast<uint8_t>(tile < count ? rows[tile] : kTile);
    }
    _tile_loadconfig(&config);
  }
};

// A block of 16 pairs of operands, where it lies or, when it is smaller, copied.
struct Operand {
  const uint32_t* data;
  int64_t stride;  // in pairs
};
struct Copy {
  alignas(64) uint32_t pairs[kBlockRows * kPanel];

  Operand Of(const uint32_t* from, int64_t stride, int64_t rows, int64_t columns,
             int64_t padded_rows, int64_t padded_columns) {
    std::memset(pairs, 0, padded_rows * padded_columns * sizeof(uint32_t));
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(pairs + r * padded_columns, from + r * stride, columns * sizeof(uint32_t));
    }
    return {pairs, padded_columns};
  }
};

[[gnu::always_inline]] inline void AddWide(const Operand& x, const Operand& w, int64_t vectors) {
  const int64_t stride = w.stride * 4;
  _tile_loadd(4, x.data, x.stride * 4);
  _tile_loadd(5, w.data, stride);
  _tile_dpbf16ps(0, 4, 5);
  if (vectors == 1) return;
  _tile_loadd(6, w.data + kTile, stride);
  _tile_dpbf16ps(1, 4, 6);
  if (vectors == 2) return;
  _tile_loadd(7, w.data + 2 * kTile, stride);
  _tile_dpbf16ps(2, 4, 7);
  if (vectors == 3) return;
  _tile_loadd(5, w.data + 3 * kTile, stride);
  _tile_dpbf16ps(3, 4, 5);
}
[[gnu::always_inline]] inline void AddSquare(const Operand& x, const Operand& w, int64_t vectors) {
  _tile_loadd(6, w.data, w.stride * 4);
  _tile_loadd(4, x.data, x.stride * 4);
  _tile_dpbf16ps(0, 4, 6);
  _tile_loadd(5, x.data + kTile * x.stride, x.stride * 4);
  _tile_dpbf16ps(2, 5, 6);
  if (vectors == 1) return;
  _tile_loadd(7, w.data + kTile, w.stride * 4);
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(3, 5, 7);
}

struct Sums {
  alignas(64) float values[kBlockRows * kPanel];

  [[gnu::always_inline]] void Zero() {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  void StoreWide(int64_t vectors) {
    _tile_stored(0, values, kPanel * 4);
    if (vectors > 1) _tile_stored(1, values + kTile, kPanel * 4);
    if (vectors > 2) _tile_stored(2, values + 2 * kTile, kPanel * 4);
    if (vectors > 3) _tile_stored(3, values + 3 * kTile, kPanel * 4);
  }
  void StoreSquare(int64_t vectors) {
    float* const lower = values + kTile * kPanel;
    _tile_stored(0, values, kPanel * 4);
    _tile_stored(2, lower, kPanel * 4);
    if (vectors > 1) {
      _tile_stored(1, values + kTile, kPanel * 4);
      _tile_stored(3, lower + kTile, kPanel * 4);
    }
  }
};

// y = sums + addend, `columns` wide.
void WriteOut(const Sums& sums, int64_t rows, int64_t columns, const float* addend,
              int64_t addend_stride, float* y, int64_t y_stride) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; c += kTile) {
      const __mmask16 mask = Avx512::FirstLanes(columns - c);
      __m512 sum = Avx512::Load(sums.values + r * kPanel + c);
      if (addend != nullptr) sum += Avx512::LoadMasked(addend + r * addend_stride + c, mask);
      Avx512::StoreMasked(y + r * y_stride + c, sum, mask);
    }
  }
}

int64_t RowBlocks(const DenseWork& work) {
  return (work.rows + kBlockRows - 1) / kBlockRows;
}
int64_t DenseTiles(const DenseWork& work, TileUse) {
  return (work.out + kPanel - 1) / kPanel * RowBlocks(work);
}

// Up to 32 rows of x times a panel.
struct PanelProduct {
  int64_t rows, in, width, columns;  // width: that of the panel, padded
  const uint32_t *x, *w;             // pairs
  bool streamed;

  // The blocks of 16 pairs of x and of the columns from `first` on.
  template <class F>
  [[gnu::always_inline]] void ForBlocks(int64_t first, int64_t wide, F&& add) const {
    const int64_t whole = in / kTile * kTile;
    for (int64_t k = 0; k < whole; k += kTile) {
      if (streamed) {
        const auto* const ahead = reinterpret_cast<const char*>(w + (k + 2 * kTile) * width);
        for (int64_t line = 0; line < kTile * width * 4; line += 64) {
          _mm_prefetch(ahead + line, _MM_HINT_T0);
        }
      }
      add(Operand{x + k, in}, Operand{w + k * width + first, width});
    }
    if (whole == in) return;
    Copy x_copy, w_copy;
    add(x_copy.Of(x + whole, in, rows, in - whole, kBlockRows, kTile),
        w_copy.Of(w + whole * width + first, width, in - whole, wide, kTile, kPanel));
  }

  void Run(const float* addend, int64_t addend_stride, float* y, int64_t y_stride) const {
    Sums sums;
    if (rows <= kTile) {
      const TileScope scope = TileScope::Wide(rows);
      sums.Zero();
      ForBlocks(0, width,
                [&](const Operand& a, const Operand& b) { AddWide(a, b, width / kTile); });
      sums.StoreWide(width / kTile);
      return WriteOut(sums, rows, columns, addend, addend_stride, y, y_stride);
    }
    const TileScope scope = TileScope::Square(rows);
    for (int64_t first = 0; first < columns; first += kBlockColumns) {
      const int64_t wide = width - first < kBlockColumns ? width - first : kBlockColumns;
      const int64_t exist = columns - first < wide ? columns - first : wide;
      sums.Zero();
      ForBlocks(first, wide,
                [&](const Operand& a, const Operand& b) { AddSquare(a, b, wide / kTile); });
      sums.StoreSquare(wide / kTile);
      WriteOut(sums, rows, exist, addend == nullptr ? nullptr : addend + first, addend_stride,
               y + first, y_stride);
    }
  }
};

// No activation: products of pairs have none.
void Dense(const DenseWork& work, TileUse use, int64_t begin, int64_t end) {
  const FlushDenormals flush;
  const int64_t blocks = RowBlocks(work), tiles = DenseTiles(work, use);
  const int64_t y_stride = work.y_stride == 0 ? work.out : work.y_stride;
  for (int64_t tile = begin; tile < (end < tiles ? end : tiles); ++tile) {
    const int64_t column = tile / blocks * kPanel, row = tile % blocks * kBlockRows;
    const int64_t rest = work.out - column, padded = (rest + kTile - 1) / kTile * kTile;
    const int64_t rows = work.rows - row;
    PanelProduct{.rows = rows < kBlockRows ? rows : kBlockRows,
                 .in = work.in,
                 .width = padded < kPanel ? padded : kPanel,
                 .columns = rest < kPanel ? rest : kPanel,
                 .x = reinterpret_cast<const uint32_t*>(work.x) + row * work.in,
                 .w = reinterpret_cast<const uint32_t*>(work.w) + work.in * column,
                 .streamed = use == TileUse::kStreamed}
        .Run(work.addend == nullptr ? nullptr : work.addend + row * work.addend_stride + column,
             work.addend_stride, work.y + row * y_stride + column, y_stride);
  }
}

int64_t WeightGradientTiles(const WeightGradientWork& work) {
  return (work.in + kBlockRows - 1) / kBlockRows;
}

// Rows of the gradient for up to 32 features, from up to 128 pairs of rows.
class GradientRows {
 public:
  static constexpr int64_t kSteps = 128;

  GradientRows(const WeightGradientWork& work, int64_t feature, int64_t step)
      : work_(work), feature_(feature), step_(step) {
    features_ = work.in - feature < kBlockRows ? work.in - feature : kBlockRows;
    steps_ = work.rows - step < kSteps ? work.rows - step : kSteps;
    blocks_ = (steps_ + kTile - 1) / kTile;
    std::memset(x_, 0, blocks_ * kBlockRows * kTile * sizeof(float));
    for (int64_t block = 0; block < blocks_; ++block) {
      Avx512::Transpose(StepsOf(block), features_,
                        work.x + (step + block * kTile) * work.in + feature, work.in,
                        x_ + block * kBlockRows * kTile, kTile);
    }
  }

  void Run(bool add) const {
    Sums sums;
    const int64_t out = work_.out;
    for (int64_t panel = 0; panel < out; panel += kPanel) {
      const int64_t padded = (out - panel + kTile - 1) / kTile * kTile;
      const int64_t width = padded < kPanel ? padded : kPanel;
      const int64_t step = features_ <= kTile ? kPanel : kBlockColumns;
      for (int64_t first = 0; first < width; first += step) {
        const int64_t wide = width - first < step ? width - first : step;
        Multiply(panel + first, wide, sums);
        float* d_w = work_.d_w + work_.in * panel + feature_ * width + first;
        for (int64_t f = 0; f < features_; ++f, d_w += width) {
          for (int64_t c = 0; c < wide; c += kTile) {
            __m512 sum = Avx512::Load(sums.values + f * kPanel + c);
            if (add) sum = Avx512::Load(d_w + c) + sum;
            // Padding is zero even when x is not finite.
            Avx512::Store(d_w + c, Avx512::Keep(sum, Avx512::FirstLanes(out - panel - first - c)));
          }
        }
      }
    }
  }

 private:
  int64_t StepsOf(int64_t block) const {
    return steps_ - block * kTile < kTile ? steps_ - block * kTile : kTile;
  }

  void Multiply(int64_t column, int64_t wide, Sums& sums) const {
    const bool narrow = features_ <= kTile;
    const TileScope scope = narrow ? TileScope::Wide(features_) : TileScope::Square(features_);
    sums.Zero();
    Copy copy;
    for (int64_t block = 0; block < blocks_; ++block) {
      const auto* const z = reinterpret_cast<const uint32_t*>(work_.d_z) +
                            (step_ + block * kTile) * work_.out + column;
      const int64_t steps = StepsOf(block), exist = work_.out - column;
      const Operand w =
          steps == kTile && exist >= wide
              ? Operand{z, work_.out}
              : copy.Of(z, work_.out, steps, exist < wide ? exist : wide, kTile, kPanel);
      const Operand x{reinterpret_cast<const uint32_t*>(x_) + block * kBlockRows * kTile, kTile};
      if (narrow) {
        AddWide(x, w, wide / kTile);
      } else {
        AddSquare(x, w, wide / kTile);
      }
    }
    if (narrow) {
      sums.StoreWide(wide / kTile);
    } else {
      sums.StoreSquare(wide / kTile);
    }
  }

  const WeightGradientWork& work_;
  int64_t feature_, step_, features_, steps_, blocks_;
  alignas(64) float x_[kSteps / kTile * kBlockRows * kTile];  // [block][feature][pair]
};

void WeightGradient(const WeightGradientWork& work, int64_t begin, int64_t end) {
  const FlushDenormals flush;
  const int64_t tiles = WeightGradientTiles(work);
  for (int64_t tile = begin; tile < (end < tiles ? end : tiles); ++tile) {
    for (int64_t step = 0; step < work.rows || step == 0; step += GradientRows::kSteps) {
      GradientRows(work, tile * kBlockRows, step).Run(work.accumulate || step > 0);
    }
  }
}

template <CodeWidth kWidth>
void ProductOfCodes(const QuantisedWork& work) {
  using C = Codes<kWidth>;
  const int64_t groups = work.outputs / kTile;
  const int64_t block_bytes = work.outputs * 4 + groups * C::kGroupBytes;
  constexpr int64_t kAhead = 4096;
  const std::byte* block = work.w;
  const uint32_t* x = work.x;
  alignas(64) uint32_t pairs[2][kTile * kBlockColumns];  // two: one is read as the next is written
  Sums sums;
  const TileScope scope = TileScope::Wide(work.rows);
  sums.Zero();
  for (int64_t b = 0; b < work.in / kQuantisedBlock; ++b, block += block_bytes, x += kTile) {
    for (int64_t line = 0; line < block_bytes; line += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(block + kAhead + line), _MM_HINT_T0);
    }
    uint32_t* const to = pairs[b % 2];
    for (int64_t group = 0; group < groups; ++group) {
      C::Read(block, work.outputs, group, [&](int pair, __m512bh w) {
        _mm512_store_si512(to + pair * kBlockColumns + group * kTile, reinterpret_cast<__m512i>(w));
      });
    }
    AddWide(Operand{x, work.in / 2}, Operand{to, kBlockColumns}, groups);
  }
  sums.StoreWide(groups);
  WriteOut(sums, work.rows, work.columns, work.addend, work.addend_stride, work.y, work.y_stride);
}

void DenseQuantised(const QuantisedWork& work) {
  const FlushDenormals flush;
  if (work.width == CodeWidth::k4) {
    ProductOfCodes<CodeWidth::k4>(work);
  } else {
    ProductOfCodes<CodeWidth::k8>(work);
  }
}

}  // namespace

constinit const PairTable kAmxBlocks = {.dense_quantised = DenseQuantised,
                                        .unpack_quantised = UnpackQuantised,
                                        .dense_tiles = DenseTiles,
                                        .dense = Dense,
                                        .weight_gradient_tiles = WeightGradientTiles,
                                        .weight_gradient = WeightGradient};

}  // namespace weft::kernels
