// The row-wise kernels of kernels_transformer.h and the softmax of attention on one thread;
// templates on the vector type S.
#pragma once

#include "tensor/kernels_loops.h"
#include "tensor/kernels_pointwise.h"
#include "tensor/kernels_switch.h"

namespace weft::kernels {

template <class S>
struct TransformerRows {
  using Float = typename S::Float;
  using L = Loops<S>;
  using M = Math<S>;
  using P = Pointwise<S>;
  static constexpr int64_t kLanes = S::kLanes;
  static constexpr int64_t kTile = 64;  // keys

  // function(typed pointer) for a destination in f32 or bf16.
  template <class F>
  [[gnu::always_inline]] static void Into(void* y, bool bf16, F&& function) {
    if (bf16) {
      function(static_cast<uint16_t*>(y));
    } else {
      function(static_cast<float*>(y));
    }
  }

  static void RmsNorm(int64_t rows, int64_t columns, int64_t stride, const float* x, const float* w,
                      float offset, float epsilon, void* y, bool bf16, float* rstd) {
    const auto n = static_cast<float>(columns);
    Into(y, bf16, [&](auto* to) {
      for (int64_t row = 0; row < rows; ++row, x += stride, to += columns) {
        const float squares = L::Sum(columns, [&](auto at, int64_t i) {
          const Float v = at.Load(x + i);
          return v * v;
        });
        rstd[row] = 1.0f / __builtin_sqrtf(squares / n + epsilon);
        const Float scale = S::Set(rstd[row]), shift = S::Set(offset);
        L::Each(columns, [&](auto at, int64_t i) {
          at.Store(to + i, at.Load(x + i) * scale * (at.Load(w + i) + shift));
        });
      }
    });
  }
  static void RmsNormGradient(int64_t rows, int64_t columns, const float* x, const float* w,
                              float offset, const float* rstd, const float* d_y, bool accumulate,
                              float* d_x) {
    const auto n = static_cast<float>(columns);
    const Float shift = S::Set(offset);
    for (int64_t row = 0; row < rows; ++row, x += columns, d_y += columns, d_x += columns) {
      const auto g = [&](auto at, int64_t i) {
        return at.Load(d_y + i) * (at.Load(w + i) + shift);
      };
      const float dot =
          L::Sum(columns, [&](auto at, int64_t i) { return g(at, i) * at.Load(x + i); });
      const Float scale = S::Set(rstd[row]);
      const Float pull = S::Set(-(dot / n) * rstd[row] * rstd[row]);
      L::Each(columns, [&](auto at, int64_t i) {
        L::Put(at, accumulate, d_x + i, scale * S::Fma(at.Load(x + i), pull, g(at, i)));
      });
    }
  }
  static void RmsNormScaleGradient(int64_t rows, int64_t columns, int64_t begin, int64_t end,
                                   const float* x, const float* rstd, const float* d_y,
                                   float* d_w) {
    L::SumColumns(rows, begin, end, true, d_w, [&](auto at, int64_t row, int64_t i) {
      const int64_t element = row * columns + i;
      return at.Load(d_y + element) * (at.Load(x + element) * S::Set(rstd[row]));
    });
  }

  static void Rotate(int64_t tokens, int64_t heads, int64_t head_dimension, int64_t pairs,
                     int64_t stride, const float* table, const int32_t* positions, bool inverse,
                     float* x) {
    const Float sign = S::Set(inverse ? -1.0f : 1.0f);
    for (int64_t token = 0; token < tokens; ++token, x += stride) {
      const float* cosines = table + positions[token] * 2 * pairs;
      for (int64_t head = 0; head < heads; ++head) {
        float* low = x + head * head_dimension;
        float* high = low + pairs;
        L::Each(pairs, [&](auto at, int64_t i) {
          const Float c = at.Load(cosines + i), s = sign * at.Load(cosines + pairs + i);
          const Float a = at.Load(low + i), b = at.Load(high + i);
          at.Store(low + i, S::Fma(a, c, -(b * s)));
          at.Store(high + i, S::Fma(b, c, a * s));
        });
      }
    }
  }

  // function.operator()<kOp>() for the activations of feed-forward layers.
  template <class F>
  [[gnu::always_inline]] static void SwitchGate(Unary activation, F&& function) {
    switch (activation) {
      case Unary::kSilu:
        return function.template operator()<Unary::kSilu>();
      case Unary::kGelu:
        return function.template operator()<Unary::kGelu>();
      case Unary::kGeluErf:
        return function.template operator()<Unary::kGeluErf>();
      default:
        return function.template operator()<Unary::kRelu>();
    }
  }
  static void Gate(int64_t rows, int64_t columns, Unary activation, bool gated, const float* x,
                   void* y, bool bf16) {
    SwitchGate(activation, [&]<Unary kOp>() {
      Into(y, bf16, [&](auto* to) {
        const float* from = x;
        for (int64_t row = 0; row < rows; ++row, to += columns) {
          if (gated) {
            L::Each(columns, [&](auto at, int64_t i) {
              at.Store(to + i,
                       P::template Apply<kOp>(at.Load(from + i)) * at.Load(from + columns + i));
            });
            from += 2 * columns;
          } else {
            L::Each(columns, [&](auto at, int64_t i) {
              at.Store(to + i, P::template Apply<kOp>(at.Load(from + i)));
            });
            from += columns;
          }
        }
      });
    });
  }
  static void GateGradient(int64_t rows, int64_t columns, Unary activation, bool gated,
                           const float* x, const float* d_y, void* d_x, bool bf16) {
    SwitchGate(activation, [&]<Unary kOp>() {
      Into(d_x, bf16, [&](auto* to) {
        const float *from = x, *d = d_y;
        for (int64_t row = 0; row < rows; ++row, d += columns) {
          if (gated) {
            L::Each(columns, [&](auto at, int64_t i) {
              const Float gate = at.Load(from + i), up = at.Load(from + columns + i);
              const Float open = P::template Apply<kOp>(gate), slope = at.Load(d + i);
              at.Store(to + i, P::template ApplyGradient<kOp>(gate, open, slope * up));
              at.Store(to + columns + i, slope * open);
            });
            from += 2 * columns;
            to += 2 * columns;
          } else {
            L::Each(columns, [&](auto at, int64_t i) {
              const Float v = at.Load(from + i);
              at.Store(to + i, P::template ApplyGradient<kOp>(v, P::template Apply<kOp>(v),
                                                              at.Load(d + i)));
            });
            from += columns;
            to += columns;
          }
        }
      });
    });
  }

  static Float Cap(Float x, Float cap) { return cap * M::Tanh(x / cap); }

  static float Maximum(int64_t count, const float* x) {
    Float largest = S::Set(-__builtin_inff());
    L::Each(count, [&](auto at, int64_t i) {
      const Float v = at.KeepOr(at.Load(x + i), largest);
      largest = S::Max(v, largest);
    });
    return S::MaxLane(largest);
  }

  static void LogitStatistics(int64_t rows, int64_t columns, float scale, float cap, float* x,
                              float* log_sum, float* entropy) {
    for (int64_t row = 0; row < rows; ++row, x += columns) {
      if (cap > 0) {
        L::Each(columns, [&](auto at, int64_t i) {
          at.Store(x + i, Cap(at.Load(x + i), S::Set(cap)) * S::Set(scale));
        });
      } else if (scale != 1) {
        L::Each(columns,
                [&](auto at, int64_t i) { at.Store(x + i, at.Load(x + i) * S::Set(scale)); });
      }
      const float largest = Maximum(columns, x);
      const Float shift = S::Set(largest);
      const float sum =
          L::Sum(columns, [&](auto at, int64_t i) { return M::Exp(at.Load(x + i) - shift); });
      log_sum[row] = largest + Logarithm(sum);
      if (entropy == nullptr) continue;
      const Float normal = S::Set(log_sum[row]);
      // log p of a token that has none of the mass times 0 would be NaN: it counts as 0.
      entropy[row] = -L::Sum(columns, [&](auto at, int64_t i) {
        const Float log_p = at.Load(x + i) - normal, p = M::Exp(log_p);
        return p > S::Set(0.0f) ? p * log_p : S::Set(0.0f);
      });
    }
  }
  static void LogitGradient(int64_t rows, int64_t columns, float scale, float cap, const float* x,
                            const float* log_sum, const float* entropy, const int32_t* target,
                            const float* d_log_probability, const float* d_entropy, void* d_x,
                            bool bf16) {
    Into(d_x, bf16, [&](auto* to) {
      for (int64_t row = 0; row < rows; ++row, x += columns, to += columns) {
        const Float normal = S::Set(log_sum[row]);
        const Float d = S::Set(target[row] < 0 ? 0.0f : d_log_probability[row]);
        const Float e = S::Set(d_entropy == nullptr ? 0.0f : d_entropy[row]);
        const Float h = S::Set(d_entropy == nullptr ? 0.0f : entropy[row]);
        const auto slope = [&](Float v, Float hit) {
          const Float log_p = v - normal, p = M::Exp(log_p);
          Float g = S::Fma(-d, p, hit);
          if (d_entropy != nullptr) {
            g = p > S::Set(0.0f) ? S::Fma(-e * p, log_p + h, g) : g;
          }
          g = g * S::Set(scale);
          if (cap > 0) {
            const Float t = v / S::Set(scale * cap);  // the tanh
            g = g * S::Fma(-t, t, S::Set(1.0f));
          }
          return g;
        };
        L::Each(columns,
                [&](auto at, int64_t i) { at.Store(to + i, slope(at.Load(x + i), S::Set(0.0f))); });
        if (target[row] < 0) continue;
        const typename L::Part one{S::FirstLanes(1)};
        one.Store(to + target[row], slope(one.Load(x + target[row]), d));
      }
    });
  }

  // Rows of scores in tiles of 64 keys, s [tiles][rows][64], of which row r counts the keys
  // [first[r], last[r]): s becomes exp(score - largest), f32 in place or bf16 in p, 0 for the other
  // keys; largest and sum per row. score = s * scale, capped.
  static void Attend(int64_t rows, int64_t tiles, float scale, float cap, const int32_t* first,
                     const int32_t* last, float* s, uint16_t* p, float* largest, float* sum) {
    const int64_t step = rows * kTile;
    for (int64_t row = 0; row < rows; ++row) {
      float* const scores = s + row * kTile;
      const int64_t begin = first[row], end = last[row];
      Float most = S::Set(-__builtin_inff());
      ForTiles(begin, end, [&](int64_t tile, int64_t low, int64_t high) {
        float* const at_tile = scores + tile * step;
        L::Each(high - low, [&](auto at, int64_t i) {
          Float v = at.Load(at_tile + low + i) * S::Set(scale);
          if (cap > 0) v = Cap(v, S::Set(cap));
          at.Store(at_tile + low + i, v);
          v = at.KeepOr(v, most);
          most = S::Max(v, most);
        });
      });
      largest[row] = S::MaxLane(most);
      const Float shift = S::Set(largest[row]);
      constexpr int kParts = static_cast<int>(16 / kLanes);
      Float total[kParts];
      for (int part = 0; part < kParts; ++part) total[part] = S::Set(0.0f);
      for (int64_t tile = 0; tile < tiles; ++tile) {
        float* const at_tile = scores + tile * step;
        uint16_t* const rounded = p == nullptr ? nullptr : p + tile * step + row * kTile;
        const int64_t low = begin - tile * kTile, high = end - tile * kTile;
        for (int64_t i = 0; i < kTile; i += 16) {
#pragma GCC unroll 16
          for (int part = 0; part < kParts; ++part) {
            const int64_t k = i + part * kLanes;
            Float e = S::Set(0.0f);
            if (k < high && k + kLanes > low) {
              e = M::Exp(S::Load(at_tile + k) - shift);
              e = S::Keep(e, S::FirstLanes(high - k));
              if (k < low) e = S::KeepOr(S::Set(0.0f), e, S::FirstLanes(low - k));
            }
            if (rounded == nullptr) {
              S::Store(at_tile + k, e);
            } else {
              S::StoreBf16(rounded + k, e);
            }
            total[part] += e;
          }
        }
      }
      sum[row] = S::Fold16(total);
    }
  }
  // One tile: s the raw scores, d_p the gradient of the probabilities; p = exp(score - log_sum) and
  // d_s = p (d_p - delta) through cap and scale, both 0 for other keys. p may be s, d_s may be d_p.
  static void AttendGradient(int64_t rows, float scale, float cap, const int32_t* first,
                             const int32_t* last, const float* log_sum, const float* delta,
                             const float* s, const float* d_p, float* p, float* d_s) {
    for (int64_t row = 0; row < rows; ++row, s += kTile, d_p += kTile, p += kTile, d_s += kTile) {
      const int64_t low = first[row] < 0 ? 0 : first[row], high = last[row];
      const Float normal = S::Set(log_sum[row]), mean = S::Set(delta[row]);
      for (int64_t k = 0; k < kTile; k += kLanes) {
        if (k >= high || k + kLanes <= low) {
          S::Store(p + k, S::Set(0.0f));
          S::Store(d_s + k, S::Set(0.0f));
          continue;
        }
        Float score = S::Load(s + k) * S::Set(scale), slope = S::Set(scale);
        if (cap > 0) {
          const Float t = M::Tanh(score / S::Set(cap));
          score = t * S::Set(cap);
          slope = slope * S::Fma(-t, t, S::Set(1.0f));
        }
        Float e = S::Keep(M::Exp(score - normal), S::FirstLanes(high - k));
        if (k < low) e = S::KeepOr(S::Set(0.0f), e, S::FirstLanes(low - k));
        S::Store(d_s + k, e * (S::Load(d_p + k) - mean) * slope);
        S::Store(p + k, e);
      }
    }
  }

 private:
  static float Logarithm(float x) {
    alignas(64) float lanes[16] = {};
    lanes[0] = x;
    S::Store(lanes, M::Log(S::Load(lanes)));
    return lanes[0];
  }

  // function(tile, low, high) for the part of each tile of keys that lies in [begin, end).
  template <class F>
  [[gnu::always_inline]] static void ForTiles(int64_t begin, int64_t end, F&& function) {
    for (int64_t tile = begin / kTile; tile * kTile < end; ++tile) {
      const int64_t low = begin - tile * kTile, high = end - tile * kTile;
      function(tile, low < 0 ? 0 : low, high < kTile ? high : kTile);
    }
  }
};

}  // namespace weft::kernels
