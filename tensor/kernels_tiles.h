// Matrix products by register tiles of R rows x V vectors. One accumulator per output, k ascending,
// never blocked: a panel streams from the second-level cache at 93-99 % of peak. Tile shapes change
// speed, never bits. B rows, K inputs, N outputs; templates on the vector type S as in
// kernels_math.h, which also knows the tile shapes that fit its registers.
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
  static constexpr int64_t kBlockRows = 256;

  // One tile of y. x(r, k) is x[r * x_stride + k].
  struct Forward {
    int64_t steps;
    const float* x;
    int64_t x_stride;
    const float* w;
    int64_t w_stride;
    const float* addend;
    int64_t addend_stride;
    float* y;
    int64_t y_stride;
    int64_t columns;  // those that exist; less than the tile is wide at the right edge
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
    int64_t columns;
  };
  using ForwardTile = void (*)(const Forward&);
  using BackwardTile = void (*)(const Backward&);

  // A strip is a column of tiles: `vectors` wide, the rows dealt evenly over row_tiles.
  struct Strip {
    int64_t column, panel_column, panel_width;  // in floats; panel_column is that of the panel
    int64_t vectors;
    int64_t row_tiles;
  };

  // Calls function(strip, first, last) for the row tiles of every strip that fall in [begin, end);
  // returns their number.
  template <class F>
  static int64_t ForStrips(int64_t rows, int64_t columns, bool parallel, int64_t begin, int64_t end,
                           F&& function) {
    const int64_t padded = (columns + 15) / 16 * 16;
    int64_t index = 0;
    for (int64_t panel = 0; panel < padded; panel += kPanel) {
      const int64_t width = padded - panel < kPanel ? padded - panel : kPanel;
      const TileShape shape = S::ShapeFor(rows, width / kLanes, parallel);
      const int64_t row_tiles = (rows + shape.rows - 1) / shape.rows;
      for (int64_t vector = 0; vector < width / kLanes; vector += shape.vectors) {
        const int64_t left = width / kLanes - vector;
        const int64_t first = begin > index ? begin - index : 0;
        const int64_t last = end - index < row_tiles ? end - index : row_tiles;
        if (first < last) {
          function(Strip{panel + vector * kLanes, panel, width,
                         left < shape.vectors ? left : shape.vectors, row_tiles},
                   first, last);
        }
        index += row_tiles;
      }
    }
    return index;
  }

  // The first row of row tile t out of `tiles`, the larger ones first.
  static int64_t RowOf(int64_t rows, int64_t tiles, int64_t t) {
    const int64_t more = rows % tiles;
    return rows / tiles * t + (t < more ? t : more);
  }

  template <int R, int V, bool kByFeature, bool kEdge>
  [[gnu::always_inline]] static void Accumulate(int64_t steps, const float* x, int64_t x_stride,
                                                const float* w, int64_t w_stride,
                                                const Mask (&masks)[V], Float (&sum)[R][V]) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[r][v] = S::Set(0.0f);
    }
    for (int64_t step = 0; step < steps; ++step) {
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
        for (int v = 0; v < V; ++v) sum[r][v] = S::Fma(a, b[v], sum[r][v]);
      }
      w += w_stride;
      x += kByFeature ? x_stride : 1;
    }
  }

  template <int V>
  [[gnu::always_inline]] static void MasksFor(int64_t columns, Mask (&masks)[V]) {
    for (int v = 0; v < V; ++v) masks[v] = S::FirstLanes(columns - v * kLanes);
  }

  template <int R, int V, bool kEdge>
  [[gnu::always_inline]] static void Finish(const Forward& t, Float (&sum)[R][V]) {
    Mask masks[V];
    MasksFor(t.columns, masks);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) {
        float* y = t.y + r * t.y_stride + v * kLanes;
        if (t.addend != nullptr) {
          const float* addend = t.addend + r * t.addend_stride + v * kLanes;
          sum[r][v] += kEdge ? S::LoadMasked(addend, masks[v]) : S::Load(addend);
        }
        if constexpr (kEdge) {
          S::StoreMasked(y, sum[r][v], masks[v]);
        } else {
          S::Store(y, sum[r][v]);
        }
      }
    }
  }

  template <int R, int V>
  static void RunForward(const Forward& t) {
    Float sum[R][V];
    const Mask unused[V] = {};
    Accumulate<R, V, false, false>(t.steps, t.x, t.x_stride, t.w, t.w_stride, unused, sum);
    if (t.columns == V * kLanes) {
      Finish<R, V, false>(t, sum);
    } else {
      Finish<R, V, true>(t, sum);
    }
  }

  template <int R, int V, bool kEdge>
  static void RunBackward(const Backward& t) {
    Float sum[R][V];
    Mask masks[V];
    MasksFor(t.columns, masks);
    Accumulate<R, V, true, kEdge>(t.steps, t.x, t.x_stride, t.d_z, t.d_z_stride, masks, sum);
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
  static void RunBackwardAnyEdge(const Backward& t) {
    if (t.columns == V * kLanes) {
      RunBackward<R, V, false>(t);
    } else {
      RunBackward<R, V, true>(t);
    }
  }

  // Tiles by [vectors - 1][rows - 1]; null where the vector type has no such shape.
  template <class Tile>
  struct Shapes {
    Tile tile[S::kMostVectors][S::kMostRows];
  };
  template <int V, int R>
  static constexpr void Fill(Shapes<ForwardTile>& forward, Shapes<BackwardTile>& backward) {
    if constexpr (S::HasShape(R, V)) {
      forward.tile[V - 1][R - 1] = &RunForward<R, V>;
      backward.tile[V - 1][R - 1] = &RunBackwardAnyEdge<R, V>;
    }
    if constexpr (R < S::kMostRows) {
      Fill<V, R + 1>(forward, backward);
    } else if constexpr (V < S::kMostVectors) {
      Fill<V + 1, 1>(forward, backward);
    }
  }
  struct AllShapes {
    Shapes<ForwardTile> forward{};
    Shapes<BackwardTile> backward{};
  };
  static constexpr AllShapes MakeShapes() {
    AllShapes shapes;
    Fill<1, 1>(shapes.forward, shapes.backward);
    return shapes;
  }
  static constexpr AllShapes kShapes = MakeShapes();

  // Activation over a tile that was just written and is in the first-level cache: a second pass
  // costs nothing.
  template <Activation kActivation>
  static void Activate(int64_t rows, int64_t columns, float* y, int64_t stride) {
    for (int64_t r = 0; r < rows; ++r, y += stride) {
      Loops<S>::Each(columns, [&](auto at, int64_t i) {
        at.Store(y + i, Pointwise<S>::template Activate<kActivation>(at.Load(y + i)));
      });
    }
  }
  template <Activation kActivation>
  static void ActivateGradient(int64_t rows, int64_t columns, const float* h, float* y,
                               int64_t stride) {
    for (int64_t r = 0; r < rows; ++r, y += stride, h += stride) {
      Loops<S>::Each(columns, [&](auto at, int64_t i) {
        at.Store(y + i, Pointwise<S>::template ActivateGradient<kActivation>(at.Load(h + i),
                                                                             at.Load(y + i)));
      });
    }
  }

  static int64_t DenseTiles(const DenseWork& work, bool parallel) {
    return ForStrips(work.rows, work.out, parallel, 0, 0, [](const Strip&, int64_t, int64_t) {});
  }

  static void Dense(const DenseWork& work, bool parallel, int64_t begin, int64_t end) {
    ForStrips(work.rows, work.out, parallel, begin, end,
              [&](const Strip& strip, int64_t first, int64_t last) {
                const int64_t valid = work.out - strip.column;
                const int64_t wide = strip.vectors * kLanes;
                Forward t;
                t.steps = work.in;
                t.x_stride = work.in;
                t.w = work.w + work.in * strip.panel_column + (strip.column - strip.panel_column);
                t.w_stride = strip.panel_width;
                t.addend_stride = work.addend_stride;
                t.y_stride = work.out;
                t.columns = valid < wide ? valid : wide;
                for (int64_t tile = first; tile < last; ++tile) {
                  const int64_t row = RowOf(work.rows, strip.row_tiles, tile);
                  const int64_t rows = RowOf(work.rows, strip.row_tiles, tile + 1) - row;
                  t.x = work.x + row * work.in;
                  t.addend = work.addend == nullptr
                                 ? nullptr
                                 : work.addend + row * work.addend_stride + strip.column;
                  t.y = work.y + row * work.out + strip.column;
                  kShapes.forward.tile[strip.vectors - 1][rows - 1](t);
                  if (work.activation != Activation::kNone) {
                    Conclude(work, rows, row * work.out + strip.column, t);
                  }
                }
              });
  }

  static void Conclude(const DenseWork& work, int64_t rows, int64_t offset, const Forward& t) {
    Switch(work.activation, [&]<Activation kActivation>() {
      if (work.h == nullptr) {
        Activate<kActivation>(rows, t.columns, t.y, t.y_stride);
      } else {
        ActivateGradient<kActivation>(rows, t.columns, work.h + offset, t.y, t.y_stride);
      }
    });
  }

  static int64_t WeightGradientTiles(const WeightGradientWork& work) {
    return ForStrips(work.in, work.out, false, 0, 0, [](const Strip&, int64_t, int64_t) {});
  }

  static void WeightGradient(const WeightGradientWork& work, int64_t begin, int64_t end) {
    for (int64_t row = 0; row < work.rows || row == 0; row += kBlockRows) {
      const int64_t left = work.rows - row;
      ForStrips(work.in, work.out, false, begin, end,
                [&](const Strip& strip, int64_t first, int64_t last) {
                  const int64_t valid = work.out - strip.column;
                  const int64_t wide = strip.vectors * kLanes;
                  Backward t;
                  t.steps = left < kBlockRows ? left : kBlockRows;
                  t.x_stride = work.in;
                  t.d_z = work.d_z + row * work.out + strip.column;
                  t.d_z_stride = work.out;
                  t.add = work.accumulate || row > 0;
                  t.d_w_stride = strip.panel_width;
                  t.columns = valid < wide ? valid : wide;
                  float* strip_begin =
                      work.d_w + work.in * strip.panel_column + (strip.column - strip.panel_column);
                  for (int64_t tile = first; tile < last; ++tile) {
                    const int64_t feature = RowOf(work.in, strip.row_tiles, tile);
                    const int64_t features = RowOf(work.in, strip.row_tiles, tile + 1) - feature;
                    t.x = work.x + row * work.in + feature;
                    t.d_w = strip_begin + feature * strip.panel_width;
                    kShapes.backward.tile[strip.vectors - 1][features - 1](t);
                  }
                });
    }
  }
};

}  // namespace weft::kernels
