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
constexpr int64_t kBlock = 2 * kTile;  // rows and columns of four tiles of sums
// Pairs of a panel that rows pass by before the next ones are read, and rows that do.
constexpr int64_t kChunk = 384, kMostRows = 256;

// Tiles 0 and 1 hold sums of up to 16 rows by 32 columns, 2 and 3 those of as many rows below or of
// the columns beside; 4 and 5 rows of x; 6 and 7 columns of w.
class TileScope {
 public:
  explicit TileScope(int64_t rows) { SetRows(rows); }
  ~TileScope() { _tile_release(); }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;

  // Up to 32 of sums and of x. What the tiles hold is lost.
  void SetRows(int64_t rows) {
    if (rows == rows_) return;
    rows_ = rows;
    struct alignas(64) {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t column_bytes[16] = {};
      uint8_t rows[16] = {};
    } config;
    const bool two = rows > kTile;
    const auto above = static_cast<uint8_t>(two ? kTile : rows);
    const auto below = static_cast<uint8_t>(two ? rows - kTile : rows);
    for (int tile = 0; tile < 8; ++tile) config.column_bytes[tile] = 64;
    config.rows[0] = config.rows[1] = config.rows[4] = above;
    config.rows[2] = config.rows[3] = config.rows[5] = below;
    config.rows[6] = config.rows[7] = kTile;
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
template <int64_t kRows, int64_t kColumns>
struct Copy {
  alignas(64) uint32_t pairs[kRows * kColumns];

  Operand Of(const uint32_t* from, int64_t stride, int64_t rows, int64_t columns) {
    std::memset(pairs, 0, sizeof(pairs));
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(pairs + r * kColumns, from + r * stride, columns * sizeof(uint32_t));
    }
    return {pairs, kColumns};
  }
};

[[gnu::always_inline]] inline void ZeroSums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

// Four tiles of sums side by side, for few rows: each weight is read once.
struct Wide {
  static constexpr int64_t kColumns = 4 * kTile;

  [[gnu::always_inline]] static void Add(const Operand& x, const Operand& w, int64_t vectors) {
    const int64_t stride = w.stride * 4;
    _tile_loadd(4, x.data, x.stride * 4);
    _tile_loadd(6, w.data, stride);
    _tile_dpbf16ps(0, 4, 6);
    if (vectors == 1) return;
    _tile_loadd(7, w.data + kTile, stride);
    _tile_dpbf16ps(1, 4, 7);
    if (vectors == 2) return;
    _tile_loadd(6, w.data + 2 * kTile, stride);
    _tile_dpbf16ps(2, 4, 6);
    if (vectors == 3) return;
    _tile_loadd(7, w.data + 3 * kTile, stride);
    _tile_dpbf16ps(3, 4, 7);
  }
  // Sums as rows of 64.
  static void Load(const float* from, int64_t vectors) {
    _tile_loadd(0, from, kPanel * 4);
    if (vectors > 1) _tile_loadd(1, from + kTile, kPanel * 4);
    if (vectors > 2) _tile_loadd(2, from + 2 * kTile, kPanel * 4);
    if (vectors > 3) _tile_loadd(3, from + 3 * kTile, kPanel * 4);
  }
  static void Store(float* to, int64_t vectors) {
    _tile_stored(0, to, kPanel * 4);
    if (vectors > 1) _tile_stored(1, to + kTile, kPanel * 4);
    if (vectors > 2) _tile_stored(2, to + 2 * kTile, kPanel * 4);
    if (vectors > 3) _tile_stored(3, to + 3 * kTile, kPanel * 4);
  }
};

// Two by two: four products for four loads, where Wide takes five.
struct Square {
  static constexpr int64_t kColumns = 2 * kTile;

  [[gnu::always_inline]] static void Add(const Operand& x, const Operand& w, int64_t vectors) {
    const int64_t stride = w.stride * 4;
    _tile_loadd(4, x.data, x.stride * 4);
    _tile_loadd(6, w.data, stride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, x.data + kTile * x.stride, x.stride * 4);
    _tile_dpbf16ps(2, 5, 6);
    if (vectors == 1) return;
    _tile_loadd(7, w.data + kTile, stride);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
  }
  static void Load(const float* from, int64_t vectors) {
    const float* const below = from + kTile * kPanel;
    _tile_loadd(0, from, kPanel * 4);
    _tile_loadd(2, below, kPanel * 4);
    if (vectors == 1) return;
    _tile_loadd(1, from + kTile, kPanel * 4);
    _tile_loadd(3, below + kTile, kPanel * 4);
  }
  static void Store(float* to, int64_t vectors) {
    float* const below = to + kTile * kPanel;
    _tile_stored(0, to, kPanel * 4);
    _tile_stored(2, below, kPanel * 4);
    if (vectors == 1) return;
    _tile_stored(1, to + kTile, kPanel * 4);
    _tile_stored(3, below + kTile, kPanel * 4);
  }
};

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

int64_t Panels(int64_t columns) {
  return (columns + kPanel - 1) / kPanel;
}
// How a product is cut into units of work, a panel for a group of rows each: many rows, to read a
// panel seldom, but enough units for the threads. All panels meet one group of rows before the next
// if those stay in the second-level cache.
struct Cut {
  int64_t panels, rows, groups;
  bool rows_stay;

  explicit Cut(const DenseWork& work) : panels(Panels(work.out)) {
    constexpr int64_t kEnough = 16, kCache = 1 << 20;
    const int64_t parts = (kEnough + panels - 1) / panels;
    rows = RoundedUp((work.rows + parts - 1) / parts);
    rows = Least(kMostRows, rows < 64 ? 64 : rows);
    groups = (work.rows + rows - 1) / rows;
    rows_stay = rows * work.in * 4 <= kCache;
  }
};
int64_t DenseTiles(const DenseWork& work, TileUse) {
  const Cut cut(work);
  return cut.panels * cut.groups;
}

// Rows that Square takes; the rest are at most 16.
int64_t SquareRows(int64_t rows) {
  return rows % kBlock <= kTile ? rows / kBlock * kBlock : rows;
}

// The 16 rows of a block of weights, `wide` pairs each, to the first-level cache: where a core is
// shared, its other half leaves too few loads in flight to wait for the second.
[[gnu::always_inline]] inline void FetchRows(const uint32_t* from, int64_t stride, int64_t wide) {
#pragma GCC unroll 16
  for (int64_t row = 0; row < kTile; ++row) {
#pragma GCC unroll 4
    for (int64_t c = 0; c < wide; c += kTile) _mm_prefetch(from + row * stride + c, _MM_HINT_T0);
  }
}

// Up to kMostRows rows of x times a panel.
struct PanelProduct {
  int64_t rows, in, width, columns;  // width: that of the panel, padded
  const uint32_t *x, *w;             // pairs
  const float* addend;
  int64_t addend_stride;
  float* y;
  int64_t y_stride;

  void Run() const {
    alignas(64) float sums[kMostRows * kPanel];
    TileScope scope(Least(rows, kBlock));
    const int64_t square = SquareRows(rows);
    const int64_t chunks = rows > kTile ? (in + kChunk - 1) / kChunk : 1;
    const int64_t step = RoundedUp((in + chunks - 1) / chunks);
    for (int64_t k = 0; k < in; k += step) {
      Visit visit{.begin = k, .end = Least(in, k + step)};
      for (; visit.column < width && square > 0; visit.column += kBlock) {
        for (visit.row = 0; visit.row < square; visit.row += kBlock, ++visit.index) {
          RunBlock<Square>(visit, scope, sums);
        }
      }
      visit.column = 0;
      visit.row = square;
      if (square < rows) RunBlock<Wide>(visit, scope, sums);
    }
  }

 private:
  // Of a block of sums in a chunk of pairs [begin, end).
  struct Visit {
    int64_t begin, end, row = 0, column = 0, index = 0;
  };

  template <class Sums>
  [[gnu::always_inline]] void RunBlock(const Visit& visit, TileScope& scope, float* sums) const {
    const int64_t together = Least(rows - visit.row, kBlock);
    const int64_t wide = Least(width - visit.column, Sums::kColumns);
    scope.SetRows(together);
    float* const kept = sums + visit.row * kPanel + visit.column;
    if (visit.begin == 0) {
      ZeroSums();
    } else {
      Sums::Load(kept, wide / kTile);
    }
    if (wide == Sums::kColumns) {
      AddBlocks<Sums>(visit, together, Sums::kColumns);  // with its loops unrolled
    } else {
      AddBlocks<Sums>(visit, together, wide);
    }
    float* const to = visit.end == in ? sums + visit.column : kept;
    Sums::Store(to, wide / kTile);
    if (visit.end < in) return;
    WriteOut(to, together, Least(columns - visit.column, wide),
             addend == nullptr ? nullptr : addend + visit.row * addend_stride + visit.column,
             addend_stride, y + visit.row * y_stride + visit.column, y_stride);
  }

  // On the way an equal share of the weights that come next is fetched: those behind the chunk, or
  // with one block of rows those two blocks ahead.
  template <class Sums>
  [[gnu::always_inline]] void AddBlocks(const Visit& visit, int64_t together, int64_t wide) const {
    const int64_t vectors = wide / kTile, length = visit.end - visit.begin;
    const int64_t whole = visit.begin + length / kTile * kTile;
    const bool soon = rows <= kBlock;
    const int64_t visits =
        soon ? 1 : (rows + kBlock - 1) / kBlock * ((width + kBlock - 1) / kBlock);
    const int64_t lines = width, share = (lines + visits - 1) / visits;  // of a block of weights
    const int64_t mine = Least(lines, (visit.index + 1) * share) - visit.index * share;
    const uint32_t* from = x + visit.row * in + visit.begin;
    const uint32_t* block = w + visit.begin * width + visit.column;
    const auto* ahead = reinterpret_cast<const char*>(
        w + (visit.begin + (soon ? 2 * kTile : length)) * width + visit.index * share * kTile);
    for (int64_t k = visit.begin; k < whole; k += kTile) {
      if (soon) {
        for (int64_t line = 0; line < mine; ++line) _mm_prefetch(ahead + 64 * line, _MM_HINT_T0);
      } else {
        for (int64_t line = 0; line < mine; ++line) _mm_prefetch(ahead + 64 * line, _MM_HINT_T1);
        FetchRows(block + kTile * width, width, wide);
      }
      Sums::Add(Operand{from, in}, Operand{block, width}, vectors);
      ahead += 64 * lines;
      from += kTile;
      block += kTile * width;
    }
    if (whole == visit.end) return;
    Copy<kBlock, kTile> x_copy;
    Copy<kTile, kPanel> w_copy;
    const int64_t rest = visit.end - whole;
    Sums::Add(x_copy.Of(from, in, together, rest), w_copy.Of(block, width, rest, wide), vectors);
  }
};

// No activation: products of pairs have none.
void Dense(const DenseWork& work, TileUse use, int64_t begin, int64_t end) {
  const FlushDenormals flush;
  const Cut cut(work);
  const int64_t y_stride = work.y_stride == 0 ? work.out : work.y_stride;
  for (int64_t unit = begin; unit < Least(end, DenseTiles(work, use)); ++unit) {
    const int64_t column = (cut.rows_stay ? unit % cut.panels : unit / cut.groups) * kPanel;
    const int64_t row = (cut.rows_stay ? unit / cut.panels : unit % cut.groups) * cut.rows;
    const int64_t rest = work.out - column;
    PanelProduct{.rows = Least(work.rows - row, cut.rows),
                 .in = work.in,
                 .width = Least(RoundedUp(rest), kPanel),
                 .columns = Least(rest, kPanel),
                 .x = reinterpret_cast<const uint32_t*>(work.x) + row * work.in,
                 .w = reinterpret_cast<const uint32_t*>(work.w) + work.in * column,
                 .addend = work.addend == nullptr ? nullptr
                                                  : work.addend + row * work.addend_stride + column,
                 .addend_stride = work.addend_stride,
                 .y = work.y + row * y_stride + column,
                 .y_stride = y_stride}
        .Run();
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
    TileScope scope(Least(features_, kBlock));
    const int64_t square = SquareRows(features_);
    for (int64_t panel = 0; panel < work_.out; panel += kPanel) {
      const int64_t width = Least(RoundedUp(work_.out - panel), kPanel);
      for (int64_t column = 0; column < width; column += kBlock) {
        for (int64_t f = 0; f < square; f += kBlock) {
          RunBlock<Square>(scope, panel, width, column, f, add);
        }
      }
      if (square < features_) RunBlock<Wide>(scope, panel, width, 0, square, add);
    }
  }

 private:
  int64_t StepsOf(int64_t block) const { return Least(steps_ - block * kTile, kTile); }

  template <class Sums>
  [[gnu::always_inline]] void RunBlock(TileScope& scope, int64_t panel, int64_t width,
                                       int64_t column, int64_t f, bool add) const {
    const int64_t rows = Least(features_ - f, kBlock), begin = panel + column;
    const int64_t wide = Least(width - column, Sums::kColumns);
    const int64_t exist = Least(work_.out - begin, wide);
    scope.SetRows(rows);
    float* d_w = work_.d_w + work_.in * panel + (feature_ + f) * width + column;
    alignas(64) float sums[kBlock * kPanel];
    ZeroSums();
    for (int64_t block = 0; block < blocks_; ++block) {
      const Operand x{reinterpret_cast<const uint32_t*>(x_) + (block * kFeatures + f) * kTile,
                      kTile};
      const auto* const z = reinterpret_cast<const uint32_t*>(work_.d_z) +
                            (step_ + block * kTile) * work_.out + begin;
      if (StepsOf(block) == kTile && exist == wide) {
        Sums::Add(x, {z, work_.out}, wide / kTile);
      } else {
        Copy<kTile, kPanel> copy;
        Sums::Add(x, copy.Of(z, work_.out, StepsOf(block), exist), wide / kTile);
      }
      if (!add) continue;
      for (int64_t r = rows * block / blocks_; r < rows * (block + 1) / blocks_; ++r) {
        for (int64_t c = 0; c < wide; c += kTile) _mm_prefetch(d_w + r * width + c, _MM_HINT_T0);
      }
    }
    Sums::Store(sums, wide / kTile);
    for (int64_t r = 0; r < rows; ++r, d_w += width) {
      for (int64_t c = 0; c < wide; c += kTile) {
        __m512 sum = Avx512::Load(sums + r * kPanel + c);
        if (add) sum = Avx512::Load(d_w + c) + sum;
        // Padding is zero even when x is not finite.
        Avx512::Store(d_w + c, Avx512::Keep(sum, Avx512::FirstLanes(exist - c)));
      }
    }
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
    Wide::Add(Operand{x, work.in / 2}, Operand{to, kColumns}, groups);
  }
  Wide::Store(sums, groups);
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
                                        .weight_gradient = WeightGradient,
                                        .gradient_rows = 0,
                                        .pack_features = nullptr};

}  // namespace weft::kernels
