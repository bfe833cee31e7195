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
// Pairs of a panel that stay in the first-level cache while rows pass by, and rows that do.
constexpr int64_t kChunk = 112, kMostRows = 256;

// Tiles 0 to 3 hold sums of up to 16 rows by 64 columns, 4 rows of x, 5 to 7 columns of w.
class TileScope {
 public:
  explicit TileScope(int64_t rows) { SetRows(rows); }
  ~TileScope() { _tile_release(); }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;

  // Of sums and of x. What the tiles hold is lost.
  void SetRows(int64_t rows) {
    if (rows == rows_) return;
    rows_ = rows;
    struct alignas(64) {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t column_bytes[16] = {};
      uint8_t rows[16] = {};
    } config;
    for (int tile = 0; tile < 8; ++tile) {
      config.column_bytes[tile] = 64;
      config.rows[tile] = static_cast<uint8_t>(tile < 5 ? rows : kTile);
    }
    _tile_loadconfig(&config);
  }

 private:
  int64_t rows_ = 0;
};

// A block of 16 pairs of operands, where it lies or, when it is smaller, copied.
struct Operand {
  const uint32_t* data;
  int64_t stride;  // in pairs
};
template <int64_t kColumns>
struct Copy {
  alignas(64) uint32_t pairs[kTile * kColumns];

  Operand Of(const uint32_t* from, int64_t stride, int64_t rows, int64_t columns) {
    std::memset(pairs, 0, sizeof(pairs));
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(pairs + r * kColumns, from + r * stride, columns * sizeof(uint32_t));
    }
    return {pairs, kColumns};
  }
};

[[gnu::always_inline]] inline void Add(const Operand& x, const Operand& w, int64_t vectors) {
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

[[gnu::always_inline]] inline void ZeroSums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}
// Sums as rows of 64.
void LoadSums(const float* from, int64_t vectors) {
  _tile_loadd(0, from, kPanel * 4);
  if (vectors > 1) _tile_loadd(1, from + kTile, kPanel * 4);
  if (vectors > 2) _tile_loadd(2, from + 2 * kTile, kPanel * 4);
  if (vectors > 3) _tile_loadd(3, from + 3 * kTile, kPanel * 4);
}
void StoreSums(float* to, int64_t vectors) {
  _tile_stored(0, to, kPanel * 4);
  if (vectors > 1) _tile_stored(1, to + kTile, kPanel * 4);
  if (vectors > 2) _tile_stored(2, to + 2 * kTile, kPanel * 4);
  if (vectors > 3) _tile_stored(3, to + 3 * kTile, kPanel * 4);
}

// y = sums + addend, `columns` wide.
void WriteOut(const float* sums, int64_t rows, int64_t columns, const float* addend,
              int64_t addend_stride, float* y, int64_t y_stride) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; c += kTile) {
      const __mmask16 mask = Avx512::FirstLanes(columns - c);
      __m512 sum = Avx512::Load(sums + r * kPanel + c);
      if (addend != nullptr) sum += Avx512::LoadMasked(addend + r * addend_stride + c, mask);
      Avx512::StoreMasked(y + r * y_stride + c, sum, mask);
    }
  }
}

int64_t Least(int64_t a, int64_t b) {
  return a < b ? a : b;
}
int64_t RoundedUp(int64_t count) {
  return (count + kTile - 1) / kTile * kTile;
}

// Rows of a unit of work: many, to read a panel seldom, but enough units for the threads.
int64_t RowsTogether(int64_t rows) {
  const int64_t quarter = RoundedUp((rows + 3) / 4);
  return Least(kMostRows, quarter < 64 ? 64 : quarter);
}
int64_t RowGroups(const DenseWork& work) {
  const int64_t together = RowsTogether(work.rows);
  return (work.rows + together - 1) / together;
}
int64_t DenseTiles(const DenseWork& work, TileUse) {
  return (work.out + kPanel - 1) / kPanel * RowGroups(work);
}

// Asks for [begin, end) of what lies at `from`, in bytes, to the first-level cache if it is needed
// at once, else to the second.
[[gnu::always_inline]] inline void Fetch(const void* from, int64_t begin, int64_t end, bool soon) {
  for (int64_t line = begin; line < end; line += 64) {
    const char* const at = static_cast<const char*>(from) + line;
    if (soon) {
      _mm_prefetch(at, _MM_HINT_T0);
    } else {
      _mm_prefetch(at, _MM_HINT_T1);
    }
  }
}

// Up to kMostRows rows of x times a panel.
struct PanelProduct {
  int64_t rows, in, width, columns;  // width: that of the panel, padded
  const uint32_t *x, *w;             // pairs

  void Run(const float* addend, int64_t addend_stride, float* y, int64_t y_stride) const {
    alignas(64) float sums[kMostRows * kPanel];
    TileScope scope(Least(rows, kTile));
    const int64_t chunks = rows > kTile ? (in + kChunk - 1) / kChunk : 1;
    const int64_t step = RoundedUp((in + chunks - 1) / chunks);
    for (int64_t k = 0; k < in; k += step) {
      for (int64_t row = 0; row < rows; row += kTile) {
        scope.SetRows(Least(rows - row, kTile));
        if (k == 0) {
          ZeroSums();
        } else {
          LoadSums(sums + row * kPanel, width / kTile);
        }
        AddBlocks(row, k, Least(in, k + step));
        StoreSums(sums + row * kPanel, width / kTile);
      }
    }
    WriteOut(sums, rows, columns, addend, addend_stride, y, y_stride);
  }

 private:
  // Of 16 rows at most, pairs [begin, end). On the way an equal share of the weights that come next
  // is fetched: those behind the chunk, or with one block of rows those two blocks ahead.
  [[gnu::always_inline]] void AddBlocks(int64_t row, int64_t begin, int64_t end) const {
    const int64_t vectors = width / kTile, whole = begin + (end - begin) / kTile * kTile;
    const int64_t block_bytes = kTile * width * 4, blocks_of_rows = (rows + kTile - 1) / kTile;
    const int64_t share = RoundedUp(block_bytes / blocks_of_rows / 4) * 4;
    const bool soon = blocks_of_rows == 1;
    const int64_t ahead = soon ? 2 * kTile : end - begin;
    const uint32_t* const from = x + row * in;
    for (int64_t k = begin; k < whole; k += kTile) {
      Fetch(w + (k + ahead) * width, row / kTile * share,
            Least(block_bytes, (row / kTile + 1) * share), soon);
      Add(Operand{from + k, in}, Operand{w + k * width, width}, vectors);
    }
    if (whole == end) return;
    Copy<kTile> x_copy;
    Copy<kPanel> w_copy;
    Add(x_copy.Of(from + whole, in, Least(rows - row, kTile), end - whole),
        w_copy.Of(w + whole * width, width, end - whole, width), vectors);
  }
};

// No activation: products of pairs have none.
void Dense(const DenseWork& work, TileUse use, int64_t begin, int64_t end) {
  const FlushDenormals flush;
  const int64_t groups = RowGroups(work), together = RowsTogether(work.rows);
  const int64_t y_stride = work.y_stride == 0 ? work.out : work.y_stride;
  for (int64_t tile = begin; tile < Least(end, DenseTiles(work, use)); ++tile) {
    const int64_t column = tile / groups * kPanel, row = tile % groups * together;
    const int64_t rest = work.out - column;
    PanelProduct{.rows = Least(work.rows - row, together),
                 .in = work.in,
                 .width = Least(RoundedUp(rest), kPanel),
                 .columns = Least(rest, kPanel),
                 .x = reinterpret_cast<const uint32_t*>(work.x) + row * work.in,
                 .w = reinterpret_cast<const uint32_t*>(work.w) + work.in * column}
        .Run(work.addend == nullptr ? nullptr : work.addend + row * work.addend_stride + column,
             work.addend_stride, work.y + row * y_stride + column, y_stride);
  }
}

// Gradients of some features, from up to 128 pairs of rows.
class GradientRows {
 public:
  static constexpr int64_t kSteps = 128, kFeatures = 96;

  GradientRows(const WeightGradientWork& work, int64_t feature, int64_t step)
      : work_(work),
        feature_(feature),
        features_(Least(work.in - feature, kFeatures)),
        step_(step),
        steps_(Least(work.rows - step, kSteps)),
        blocks_((steps_ + kTile - 1) / kTile) {
    // [block][feature][pair]
    if (steps_ % kTile != 0) std::memset(x_, 0, sizeof(x_));
    for (int64_t block = 0; block < blocks_; ++block) {
      Avx512::Transpose(StepsOf(block), features_,
                        work.x + (step + block * kTile) * work.in + feature, work.in,
                        x_ + block * kFeatures * kTile, kTile);
    }
  }

  void Run(bool add) const {
    TileScope scope(Least(features_, kTile));
    for (int64_t panel = 0; panel < work_.out; panel += kPanel) {
      const int64_t columns = work_.out - panel, width = Least(RoundedUp(columns), kPanel);
      for (int64_t f = 0; f < features_; f += kTile) {
        const int64_t rows = Least(features_ - f, kTile);
        scope.SetRows(rows);
        float* d_w = work_.d_w + work_.in * panel + (feature_ + f) * width;
        if (add) Fetch(d_w, 0, rows * width * 4, true);
        alignas(64) float sums[kTile * kPanel];
        ZeroSums();
        for (int64_t block = 0; block < blocks_; ++block) AddBlock(panel, width, f, block);
        StoreSums(sums, width / kTile);
        for (int64_t r = 0; r < rows; ++r, d_w += width) {
          for (int64_t c = 0; c < width; c += kTile) {
            __m512 sum = Avx512::Load(sums + r * kPanel + c);
            if (add) sum = Avx512::Load(d_w + c) + sum;
            // Padding is zero even when x is not finite.
            Avx512::Store(d_w + c, Avx512::Keep(sum, Avx512::FirstLanes(columns - c)));
          }
        }
      }
    }
  }

 private:
  int64_t StepsOf(int64_t block) const { return Least(steps_ - block * kTile, kTile); }

  [[gnu::always_inline]] void AddBlock(int64_t panel, int64_t width, int64_t f,
                                       int64_t block) const {
    const auto* const z =
        reinterpret_cast<const uint32_t*>(work_.d_z) + (step_ + block * kTile) * work_.out + panel;
    const Operand x{reinterpret_cast<const uint32_t*>(x_) + (block * kFeatures + f) * kTile, kTile};
    const int64_t steps = StepsOf(block), exist = Least(work_.out - panel, width);
    if (steps == kTile && exist == width) return Add(x, {z, work_.out}, width / kTile);
    Copy<kPanel> copy;
    Add(x, copy.Of(z, work_.out, steps, exist), width / kTile);
  }

  const WeightGradientWork& work_;
  const int64_t feature_, features_, step_, steps_, blocks_;
  alignas(64) float x_[kSteps * kFeatures];
};

int64_t WeightGradientTiles(const WeightGradientWork& work) {
  return (work.in + GradientRows::kFeatures - 1) / GradientRows::kFeatures;
}

void WeightGradient(const WeightGradientWork& work, int64_t begin, int64_t end) {
  const FlushDenormals flush;
  for (int64_t tile = begin; tile < Least(end, WeightGradientTiles(work)); ++tile) {
    for (int64_t step = 0; step < work.rows || step == 0; step += GradientRows::kSteps) {
      GradientRows(work, tile * GradientRows::kFeatures, step).Run(work.accumulate || step > 0);
    }
  }
}

template <CodeForm kForm>
void ProductOfCodes(const QuantisedWork& work) {
  using C = Codes<kForm>;
  const int64_t groups = work.outputs / kTile, block_bytes = C::BlockBytes(work.outputs);
  constexpr int64_t kAhead = 4096;
  const std::byte* block = work.w;
  const uint32_t* x = work.x;
  constexpr int64_t kColumns = 2 * kTile;
  alignas(64) uint32_t pairs[2][kTile * kColumns];  // one is read as the next is written
  alignas(64) float sums[kTile * kPanel];
  const TileScope scope(work.rows);
  ZeroSums();
  for (int64_t b = 0; b < work.in / kQuantisedBlock; ++b, block += block_bytes, x += kTile) {
    for (int64_t line = 0; line < block_bytes; line += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(block + kAhead + line), _MM_HINT_T0);
    }
    uint32_t* const to = pairs[b % 2];
    for (int64_t group = 0; group < groups; ++group) {
      C::Read(block, work.outputs, group, [&](int pair, __m512bh w) {
        _mm512_store_si512(to + pair * kColumns + group * kTile, reinterpret_cast<__m512i>(w));
      });
    }
    Add(Operand{x, work.in / 2}, Operand{to, kColumns}, groups);
  }
  StoreSums(sums, groups);
  WriteOut(sums, work.rows, work.columns, work.addend, work.addend_stride, work.y, work.y_stride);
}

void DenseQuantised(const QuantisedWork& work) {
  const FlushDenormals flush;
  WithForm(work.form, [&]<CodeForm kForm>() { ProductOfCodes<kForm>(work); });
}

}  // namespace

constinit const PairTable kAmxBlocks = {.dense_quantised = DenseQuantised,
                                        .unpack_quantised = UnpackQuantised,
                                        .dense_tiles = DenseTiles,
                                        .dense = Dense,
                                        .weight_gradient_tiles = WeightGradientTiles,
                                        .weight_gradient = WeightGradient};

}  // namespace weft::kernels
