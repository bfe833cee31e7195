// Matrix products by register tiles of R rows x V vectors. One accumulator per output, k ascending,
// never blocked: a panel streams from the second-level cache at 93-99 % of peak. Tile shapes change
// speed, never bits. B rows, K inputs, N outputs; templates on the vector type S as in
// kernels_math.h, which also knows the tile shapes that fit its registers and how two elements
// multiply into an accumulator: S::MultiplyAdd is Fma for f32 (S::kDepth 1). For bf16 an element is
// a pair of neighbours in k (kernels_pairs.h, kDepth 2), so K and the strides count pairs and
// nothing else differs.
#pragma once

#include "tensor/kernels_loops.h"
#include "tensor/kernels_switch.h"
#include "tensor/kernels_table.h"

namespace weft::kernels {

template <class S>
struct Tiles {
  using Float = typename S::Float;
  using Mask = typename S::Mask;
  static constexpr int64_t kLanes = S::kLanes;
  static constexpr int64_t kPanel = 64;
  static constexpr int64_t kBlockRows = 256 / S::kDepth;  // in steps

  // One tile of y. x(r, k) is x[r * x_stride + k].
  struct Forward {
    int64_t steps;
    const float* x;
    int64_t x_stride;
    const float* w;
    int64_t w_stride;
    const float* addend;  // may be null
    int64_t addend_stride;
    float* y;
    int64_t y_stride;
    Activation activation;  // of a single row; kNone for more, where a second pass applies it
    float* sums;  // null: add the addend and write y; else the sums go here, rows one after another
    bool carried;  // go on from what lies in sums
    bool streamed;
  };
  // One tile of d_w: rows are features, steps are rows of x. x(r, b) is x[b * x_stride + r].
  struct Backward {
    int64_t steps;
    const float* x;
    int64_t x_stride;
    const float* d_z;
    int64_t d_z_stride;
    bool add;
    float* d_w;
    int64_t d_w_stride;
    int64_t columns;  // those that exist; less than the tile is wide at the right edge
  };
  using ForwardTile = void (*)(const Forward&);
  using BackwardTile = void (*)(const Backward&);

  // A strip is a column of tiles, its rows dealt evenly over them.
  struct Strip {
    int64_t column, panel_column, panel_width;  // in floats; panel_column is that of the panel
    int64_t vectors, columns;                   // columns that exist
    int64_t row, rows_each, larger;             // the first `larger` tiles have one row more

    int64_t RowOf(int64_t tile) const {
      return row + rows_each * tile + (tile < larger ? tile : larger);
    }
    int64_t RowsOf(int64_t tile) const { return rows_each + (tile < larger ? 1 : 0); }
  };

  // Calls function(strip, first, last) for the row tiles of every strip that fall in [begin, end);
  // returns their number. All strips meet some of the rows, at most `together`, before the next.
  template <class F>
  [[gnu::always_inline]] static int64_t ForStrips(int64_t rows, int64_t columns, TileUse use,
                                                  int64_t together, int64_t begin, int64_t end,
                                                  F&& function) {
    const int64_t parts = rows / together + (rows % together != 0 ? 1 : 0);
    int64_t index = 0;
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t row = rows * part / parts, next = rows * (part + 1) / parts;
      index += ForStripsOf(row, next - row, columns, use, begin - index, end - index, function);
    }
    return index;
  }
  template <class F>
  [[gnu::always_inline]] static int64_t ForStripsOf(int64_t row, int64_t rows, int64_t columns,
                                                    TileUse use, int64_t begin, int64_t end,
                                                    F&& function) {
    const int64_t padded = (columns + 15) / 16 * 16;
    int64_t index = 0;
    for (int64_t panel = 0; panel < padded; panel += kPanel) {
      const int64_t width = padded - panel < kPanel ? padded - panel : kPanel;
      const TileShape shape = S::ShapeFor(rows, width / kLanes, use);
      int64_t tiles = rows > 0 ? 1 : 0, rows_each = rows, larger = 0;
      if (rows > shape.rows) {
        tiles = (rows + shape.rows - 1) / shape.rows;
        rows_each = rows / tiles;
        larger = rows % tiles;
      }
      for (int64_t at = 0; at < width; at += shape.vectors * kLanes) {
        const int64_t first = begin > index ? begin - index : 0;
        const int64_t last = end - index < tiles ? end - index : tiles;
        index += tiles;
        if (first >= last) continue;
        const int64_t full = shape.vectors * kLanes;
        const int64_t wide = width - at < full ? width - at : full;
        const int64_t exist = columns - panel - at;
        function(Strip{.column = panel + at,
                       .panel_column = panel,
                       .panel_width = width,
                       .vectors = wide / kLanes,
                       .columns = exist < wide ? exist : wide,
                       .row = row,
                       .rows_each = rows_each,
                       .larger = larger},
                 first, last);
      }
    }
    return index;
  }

  // Adds to sum. kAhead: steps that weights, and x by feature, are fetched ahead of their use; 0:
  // left to the hardware, which stops at pages and sees no columns.
  template <int R, int V, bool kByFeature, bool kEdge, int kAhead = 0>
  [[gnu::always_inline]] static void Accumulate(int64_t steps, const float* x, int64_t x_stride,
                                                const float* w, int64_t w_stride,
                                                const Mask (&masks)[V], Float (&sum)[R][V]) {
    if constexpr (requires { S::kBlock; }) {
      AccumulateBlocks<R, V, kByFeature, kEdge>(steps, x, x_stride, w, w_stride, masks, sum);
      return;
    }
#pragma GCC unroll 2
    for (int64_t step = 0; step < steps; ++step) {
      if constexpr (kAhead > 0) {
#pragma GCC unroll 16
        for (int v = 0; v < V; v += 16 / kLanes) {
          __builtin_prefetch(w + kAhead * w_stride + v * kLanes);
        }
        if (kByFeature) __builtin_prefetch(x + kAhead * x_stride);
      }
      Float b[V];
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) {
        if constexpr (kEdge) {
          b[v] = S::LoadMasked(w + v * kLanes, masks[v]);
        } else {
          b[v] = S::Load(w + v * kLanes);
        }
      }
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const Float a = S::Set(kByFeature ? x[r] : x[r * x_stride]);
#pragma GCC unroll 16
        for (int v = 0; v < V; ++v) sum[r][v] = S::MultiplyAdd(a, b[v], sum[r][v]);
      }
      w += w_stride;
      x += kByFeature ? x_stride : 1;
    }
  }

  // The order of tiles of pairs: sums of the even and of the odd elements of a block, then both on
  // top. Not made for speed.
  template <int R, int V, bool kByFeature, bool kEdge>
  static void AccumulateBlocks(int64_t steps, const float* x, int64_t x_stride, const float* w,
                               int64_t w_stride, const Mask (&masks)[V], Float (&sum)[R][V]) {
    for (int64_t block = 0; block < steps; block += S::kBlock) {
      const int64_t end = steps - block < S::kBlock ? steps : block + S::kBlock;
      for (int r = 0; r < R; ++r) {
        for (int v = 0; v < V; ++v) {
          Float even = S::Set(0.0f), odd = S::Set(0.0f);
          for (int64_t step = block; step < end; ++step) {
            const float* const from = w + step * w_stride + v * kLanes;
            const Float b = kEdge ? S::LoadMasked(from, masks[v]) : S::Load(from);
            const Float a = S::Set(kByFeature ? x[step * x_stride + r] : x[r * x_stride + step]);
            even = S::MultiplyAddEven(a, b, even);
            odd = S::MultiplyAddOdd(a, b, odd);
          }
          sum[r][v] += even + odd;
        }
      }
    }
  }

  // Where the second-level cache feeds a large tile and the core is shared, loads in flight are
  // few.
  template <int R, int V>
  static constexpr int kAheadOf = R >= 4 && V* kLanes == kPanel ? 8 : 0;

  template <Activation kActivation, int V>
  [[gnu::always_inline]] static void Activate(Float (&sum)[V]) {
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) sum[v] = Pointwise<S>::template Activate<kActivation>(sum[v]);
  }

  template <int R, int V>
  static void RunForward(const Forward& t) {
    Float sum[R][V];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) {
        sum[r][v] = t.carried ? S::Load(t.sums + (r * V + v) * kLanes) : S::Set(0.0f);
      }
    }
    const Mask unused[V] = {};
    if constexpr (V * kLanes == kPanel && R <= kStreamedRows) {
      if (t.streamed) {
        Accumulate<R, V, false, false, 16>(t.steps, t.x, t.x_stride, t.w, t.w_stride, unused, sum);
      } else {
        Accumulate<R, V, false, false, kAheadOf<R, V>>(t.steps, t.x, t.x_stride, t.w, t.w_stride,
                                                       unused, sum);
      }
    } else {
      Accumulate<R, V, false, false>(t.steps, t.x, t.x_stride, t.w, t.w_stride, unused, sum);
    }
    if (t.sums != nullptr) {
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
        for (int v = 0; v < V; ++v) S::Store(t.sums + (r * V + v) * kLanes, sum[r][v]);
      }
      return;
    }
    if (t.addend != nullptr) {
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
        for (int v = 0; v < V; ++v) {
          sum[r][v] += S::Load(t.addend + r * t.addend_stride + v * kLanes);
        }
      }
    }
    if constexpr (R == 1) {
      // No Switch here: a lambda that captures the sums would put them in memory.
      if (t.activation == Activation::kTanh) Activate<Activation::kTanh>(sum[0]);
      if (t.activation == Activation::kRelu) Activate<Activation::kRelu>(sum[0]);
      if (t.activation == Activation::kSigmoid) Activate<Activation::kSigmoid>(sum[0]);
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) S::Store(t.y + r * t.y_stride + v * kLanes, sum[r][v]);
    }
  }

  template <int R, int V, bool kEdge>
  [[gnu::always_inline]] static void RunBackward(const Backward& t) {
    Float sum[R][V];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[r][v] = S::Set(0.0f);
    }
    Mask masks[V] = {};
    if constexpr (kEdge) {
      for (int v = 0; v < V; ++v) masks[v] = S::FirstLanes(t.columns - v * kLanes);
    }
    if (t.add) {
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
        for (int v = 0; v < V; v += 16 / kLanes) {
          __builtin_prefetch(t.d_w + r * t.d_w_stride + v * kLanes);
        }
      }
    }
    Accumulate<R, V, true, kEdge, kAheadOf<R, V>>(t.steps, t.x, t.x_stride, t.d_z, t.d_z_stride,
                                                  masks, sum);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) {
        float* d_w = t.d_w + r * t.d_w_stride + v * kLanes;
        if (t.add) sum[r][v] = S::Load(d_w) + sum[r][v];
        // Padding is zero even when x is not finite.
        S::Store(d_w, kEdge ? S::Keep(sum[r][v], masks[v]) : sum[r][v]);
      }
    }
  }
  template <int R, int V>
  static void RunBackward(const Backward& t) {
    if (t.columns == V * kLanes) {
      RunBackward<R, V, false>(t);
    } else {
      RunBackward<R, V, true>(t);
    }
  }

  // Tiles by [vectors - 1][rows - 1]; null where the vector type has no such shape.
  struct Shapes {
    ForwardTile forward[S::kMostVectors][S::kMostRows];
    BackwardTile backward[S::kMostVectors][S::kMostRows];
  };
  template <int V, int R>
  static constexpr void Fill(Shapes& shapes) {
    if constexpr (S::HasShape(R, V)) {
      shapes.forward[V - 1][R - 1] = &RunForward<R, V>;
      shapes.backward[V - 1][R - 1] = &RunBackward<R, V>;
    }
    if constexpr (R < S::kMostRows) {
      Fill<V, R + 1>(shapes);
    } else if constexpr (V < S::kMostVectors) {
      Fill<V + 1, 1>(shapes);
    }
  }
  static constexpr Shapes MakeShapes() {
    Shapes shapes{};
    Fill<1, 1>(shapes);
    return shapes;
  }
  static constexpr Shapes kShapes = MakeShapes();

  // y = finish(sums + addend) for a tile at its right edge or with an activation: a pass over a
  // small buffer, which costs less than an epilogue for every tile shape.
  template <class F>
  [[gnu::always_inline]] static void WriteOut(const Forward& t, const Strip& strip, int64_t rows,
                                              F&& finish) {
    const float* sums = t.sums;
    const float* addend = t.addend;
    float* y = t.y;
    for (int64_t r = 0; r < rows; ++r) {
      Loops<S>::Each(strip.columns, [&](auto at, int64_t i) {
        Float z = S::Load(sums + i);
        if (addend != nullptr) z += at.Load(addend + i);
        at.Store(y + i, finish(at, r * t.y_stride + i, z));
      });
      sums += strip.vectors * kLanes;
      if (addend != nullptr) addend += t.addend_stride;
      y += t.y_stride;
    }
  }
  static void Conclude(const DenseWork& work, const Forward& t, const Strip& strip, int64_t tile) {
    const int64_t rows = strip.RowsOf(tile);
    const float* const h =
        work.h == nullptr ? nullptr : work.h + strip.RowOf(tile) * t.y_stride + strip.column;
    Switch(work.activation, [&]<Activation kActivation>() {
      if (h == nullptr) {
        WriteOut(t, strip, rows, [&](auto, int64_t, Float z) {
          return Pointwise<S>::template Activate<kActivation>(z);
        });
      } else {
        WriteOut(t, strip, rows, [&](auto at, int64_t i, Float d) {
          return Pointwise<S>::template ActivateGradient<kActivation>(at.Load(h + i), d);
        });
      }
    });
  }

  // Rows that stay in a second-level cache while all panels come by, when a panel does too.
  static int64_t RowsTogether(const DenseWork& work) {
    return work.in <= 1024 ? 256 : INT64_MAX;
  }
  static int64_t DenseTiles(const DenseWork& work, TileUse use) {
    return ForStrips(work.rows, work.out, use, RowsTogether(work), 0, 0,
                     [](const Strip&, int64_t, int64_t) {});
  }

  // Where a tile reads and writes.
  static void Place(const DenseWork& work, const Strip& strip, int64_t tile, Forward& t) {
    const int64_t row = strip.RowOf(tile);
    t.x = work.x + row * work.in;
    t.addend =
        work.addend == nullptr ? nullptr : work.addend + row * work.addend_stride + strip.column;
    t.y = work.y + row * t.y_stride + strip.column;
  }

  // The row tiles [first, last) of a strip whose panel does not fit a second-level cache: a part of
  // it meets some of them before the next part.
  static void Deep(const DenseWork& work, const Strip& strip, Forward t, int64_t first,
                   int64_t last) {
    constexpr int64_t kTogether = 32;
    alignas(64) float sums[kTogether * kMostSums];
    const float* const w = t.w;
    for (int64_t from = first; from < last; from += kTogether) {
      const int64_t to = last - from < kTogether ? last : from + kTogether;
      for (int64_t k = 0; k < work.in; k += kDeepSteps) {
        t.steps = work.in - k < kDeepSteps ? work.in - k : kDeepSteps;
        t.w = w + k * t.w_stride;
        t.carried = k > 0;
        for (int64_t tile = from; tile < to; ++tile) {
          Place(work, strip, tile, t);
          t.x += k;
          t.sums = sums + (tile - from) * kMostSums;
          kShapes.forward[strip.vectors - 1][strip.RowsOf(tile) - 1](t);
        }
      }
      for (int64_t tile = from; tile < to; ++tile) {
        Place(work, strip, tile, t);
        t.sums = sums + (tile - from) * kMostSums;
        Conclude(work, t, strip, tile);
      }
    }
  }

  static void Dense(const DenseWork& work, TileUse use, int64_t begin, int64_t end) {
    alignas(64) float sums[kMostSums];
    ForStrips(work.rows, work.out, use, RowsTogether(work), begin, end,
              [&](const Strip& strip, int64_t first, int64_t last) {
                const bool single = work.h == nullptr && strip.rows_each + strip.larger == 1;
                const bool direct = (single || work.activation == Activation::kNone) &&
                                    strip.columns == strip.vectors * kLanes;
                Forward t;
                t.activation = single ? work.activation : Activation::kNone;
                t.steps = work.in;
                t.x_stride = work.in;
                t.w = work.w + work.in * strip.panel_column + (strip.column - strip.panel_column);
                t.w_stride = strip.panel_width;
                t.addend_stride = work.addend_stride;
                t.y_stride = work.y_stride == 0 ? work.out : work.y_stride;
                t.sums = direct ? nullptr : sums;
                t.carried = false;
                t.streamed = use == TileUse::kStreamed;
                if (work.in > 2 * kDeepSteps && last - first > 1) {
                  Deep(work, strip, t, first, last);
                  return;
                }
                for (int64_t tile = first; tile < last; ++tile) {
                  Place(work, strip, tile, t);
                  kShapes.forward[strip.vectors - 1][strip.RowsOf(tile) - 1](t);
                  if (!direct) Conclude(work, t, strip, tile);
                }
              });
  }

  static int64_t WeightGradientTiles(const WeightGradientWork& work) {
    return ForStrips(work.in, work.out, TileUse::kAlone, INT64_MAX, 0, 0,
                     [](const Strip&, int64_t, int64_t) {});
  }

  // Features of a tile of a whole panel side by side.
  static void PackFeatures(const WeightGradientWork& work, int64_t begin, int64_t end,
                           float* x_tiles) {
    const TileShape shape = S::ShapeFor(work.in, kPanel / kLanes, TileUse::kAlone);
    const int64_t tiles = (work.in + shape.rows - 1) / shape.rows;
    ForStripsOf(0, work.in, kPanel, TileUse::kAlone, tiles * begin / kFeatureParts,
                tiles * end / kFeatureParts, [&](const Strip& strip, int64_t first, int64_t last) {
                  for (int64_t tile = first; tile < last; ++tile) {
                    const int64_t feature = strip.RowOf(tile), features = strip.RowsOf(tile);
                    const float* x = work.x + feature;
                    float* to = x_tiles + feature * work.rows;
                    const Mask mask = S::FirstLanes(features);
                    for (int64_t step = 0; step < work.rows; ++step) {
                      S::StoreMasked(to, S::LoadMasked(x, mask), mask);
                      x += work.in;
                      to += features;
                    }
                  }
                });
  }

  static void WeightGradient(const WeightGradientWork& work, int64_t begin, int64_t end) {
    for (int64_t row = 0; row < work.rows || row == 0; row += kBlockRows) {
      const int64_t left = work.rows - row;
      alignas(64) float errors[kBlockRows * kPanel];
      ForStrips(work.in, work.out, TileUse::kAlone, INT64_MAX, begin, end,
                [&](const Strip& strip, int64_t first, int64_t last) {
                  constexpr int64_t kWorthCopying = 16;  // tiles
                  Backward t;
                  t.steps = left < kBlockRows ? left : kBlockRows;
                  t.d_z = work.d_z + row * work.out + strip.column;
                  t.d_z_stride = work.out;
                  t.add = work.accumulate || row > 0;
                  t.d_w_stride = strip.panel_width;
                  t.columns = strip.columns;
                  const int64_t full = strip.vectors * kLanes;
                  if (last - first >= kWorthCopying && strip.columns == full) {
                    for (int64_t step = 0; step < t.steps; ++step) {
                      __builtin_memcpy(errors + step * full, t.d_z + step * work.out,
                                       static_cast<size_t>(full) * sizeof(float));
                    }
                    t.d_z = errors;
                    t.d_z_stride = full;
                  }
                  const bool packed = work.x_tiles != nullptr && strip.panel_width == kPanel;
                  float* d_w =
                      work.d_w + work.in * strip.panel_column + (strip.column - strip.panel_column);
                  for (int64_t tile = first; tile < last; ++tile) {
                    const int64_t feature = strip.RowOf(tile);
                    const int64_t features = strip.RowsOf(tile);
                    t.x = packed ? work.x_tiles + feature * work.rows
                                 : work.x + row * work.in + feature;
                    t.x_stride = packed ? features : work.in;
                    t.d_w = d_w + feature * strip.panel_width;
                    kShapes.backward[strip.vectors - 1][features - 1](t);
                  }
                });
    }
  }

  static double MultiplyAdd(int64_t steps, float* result) {
    constexpr int kSums = S::kLanes == 16 ? 24 : 12;
    Float sum[kSums];
#pragma GCC unroll 24
    for (int i = 0; i < kSums; ++i) sum[i] = S::Set(static_cast<float>(i));
    const Float a = S::Set(0.5f), b = S::Set(1.0f);
    for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 24
      for (int i = 0; i < kSums; ++i) sum[i] = S::Fma(sum[i], a, b);
    }
#pragma GCC unroll 24
    for (int i = 1; i < kSums; ++i) sum[0] += sum[i];
    *result = S::MaxLane(sum[0]);
    return 2.0 * kSums * static_cast<double>(kLanes) * static_cast<double>(steps);
  }

 private:
  static constexpr int kMostSums = 384;        // the largest tile: 24 vectors of 16
  static constexpr int64_t kDeepSteps = 2048;  // half a megabyte of a panel; whole blocks of sums
};

}  // namespace weft::kernels
