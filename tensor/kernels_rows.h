// Row-wise kernels on one thread: maxima, the softmax family, layer normalisation, recurrent cells;
// templates on the vector type S.
#pragma once

#include "tensor/kernels_loops.h"
#include "tensor/kernels_pointwise.h"

namespace weft::kernels {

template <class S>
struct Rows {
  using Float = typename S::Float;
  using L = Loops<S>;
  using M = Math<S>;
  using P = Pointwise<S>;

  // The largest element; NaN may be ignored.
  static float Maximum(int64_t count, const float* x) {
    Float largest = S::Set(-__builtin_inff());
    L::Each(count, [&](auto at, int64_t i) {
      const Float v = at.KeepOr(at.Load(x + i), largest);
      largest = S::Max(v, largest);
    });
    return S::MaxLane(largest);
  }

  static void MaxLast(int64_t rows, int64_t columns, const float* x, float* y, int64_t* argmax) {
    for (int64_t row = 0; row < rows; ++row, x += columns) {
      auto nan = S::SetInt(0) != S::SetInt(0);
      L::Each(columns, [&](auto at, int64_t i) {
        const Float v = at.Load(x + i);
        nan = nan | (v != v);
      });
      const bool any_nan = S::Any(nan);
      const float largest = any_nan ? 0.0f : Maximum(columns, x);
      int64_t best = 0;
      while (any_nan ? x[best] == x[best] : x[best] != largest) ++best;
      y[row] = x[best];
      if (argmax != nullptr) argmax[row] = best;
    }
  }

  static void Softmax(int64_t rows, int64_t columns, const float* x, float* y) {
    for (int64_t row = 0; row < rows; ++row, x += columns, y += columns) {
      const Float largest = S::Set(Maximum(columns, x));
      const float sum = L::Sum(columns, [&](auto at, int64_t i) {
        const Float e = M::Exp(at.Load(x + i) - largest);
        at.Store(y + i, e);
        return e;
      });
      L::Each(columns, [&](auto at, int64_t i) { at.Store(y + i, at.Load(y + i) / S::Set(sum)); });
    }
  }
  static void SoftmaxGradient(int64_t rows, int64_t columns, const float* y, const float* d_y,
                              bool accumulate, float* d_x) {
    for (int64_t row = 0; row < rows; ++row, y += columns, d_y += columns, d_x += columns) {
      const Float dot = S::Set(
          L::Sum(columns, [&](auto at, int64_t i) { return at.Load(d_y + i) * at.Load(y + i); }));
      L::Each(columns, [&](auto at, int64_t i) {
        L::Put(at, accumulate, d_x + i, at.Load(y + i) * (at.Load(d_y + i) - dot));
      });
    }
  }
  // The logarithms of many rows at once: one row of a policy's few actions would leave most lanes
  // idle.
  static void LogSoftmax(int64_t rows, int64_t columns, const float* x, float* y) {
    constexpr int64_t kTogether = 16;
    float largest[kTogether], log_sum[kTogether];
    for (int64_t begin = 0; begin < rows; begin += kTogether) {
      const int64_t count = rows - begin < kTogether ? rows - begin : kTogether;
      for (int64_t r = 0; r < count; ++r) {
        const float* row = x + (begin + r) * columns;
        largest[r] = Maximum(columns, row);
        log_sum[r] = L::Sum(columns, [&](auto at, int64_t i) {
          return M::Exp(at.Load(row + i) - S::Set(largest[r]));
        });
      }
      L::Each(count,
              [&](auto at, int64_t r) { at.Store(log_sum + r, M::Log(at.Load(log_sum + r))); });
      for (int64_t r = 0; r < count; ++r) {
        const int64_t offset = (begin + r) * columns;
        L::Each(columns, [&](auto at, int64_t i) {
          at.Store(y + offset + i,
                   at.Load(x + offset + i) - S::Set(largest[r]) - S::Set(log_sum[r]));
        });
      }
    }
  }
  static void LogSoftmaxGradient(int64_t rows, int64_t columns, const float* y, const float* d_y,
                                 bool accumulate, float* d_x) {
    for (int64_t row = 0; row < rows; ++row, y += columns, d_y += columns, d_x += columns) {
      const Float sum =
          S::Set(L::Sum(columns, [&](auto at, int64_t i) { return at.Load(d_y + i); }));
      L::Each(columns, [&](auto at, int64_t i) {
        L::Put(at, accumulate, d_x + i, S::Fma(-M::Exp(at.Load(y + i)), sum, at.Load(d_y + i)));
      });
    }
  }

  static void LayerNorm(int64_t rows, int64_t columns, const float* x, const float* gamma,
                        const float* beta, float epsilon, void* y, bool bf16, float* mean,
                        float* rstd) {
    if (bf16) {
      LayerNorm(rows, columns, x, gamma, beta, epsilon, static_cast<uint16_t*>(y), mean, rstd);
    } else {
      LayerNorm(rows, columns, x, gamma, beta, epsilon, static_cast<float*>(y), mean, rstd);
    }
  }
  template <class T>
  static void LayerNorm(int64_t rows, int64_t columns, const float* x, const float* gamma,
                        const float* beta, float epsilon, T* y, float* mean, float* rstd) {
    const auto n = static_cast<float>(columns);
    for (int64_t row = 0; row < rows; ++row, x += columns, y += columns) {
      mean[row] = L::Sum(columns, [&](auto at, int64_t i) { return at.Load(x + i); }) / n;
      const Float centre = S::Set(mean[row]);
      const float squares = L::Sum(columns, [&](auto at, int64_t i) {
        const Float d = at.Load(x + i) - centre;
        return d * d;
      });
      rstd[row] = 1.0f / __builtin_sqrtf(squares / n + epsilon);
      const Float scale = S::Set(rstd[row]);
      L::Each(columns, [&](auto at, int64_t i) {
        at.Store(y + i,
                 S::Fma((at.Load(x + i) - centre) * scale, at.Load(gamma + i), at.Load(beta + i)));
      });
    }
  }
  static void LayerNormGradient(int64_t rows, int64_t columns, const float* x, const float* gamma,
                                const float* mean, const float* rstd, const float* d_y,
                                bool accumulate, float* d_x) {
    const auto n = static_cast<float>(columns);
    for (int64_t row = 0; row < rows; ++row, x += columns, d_y += columns, d_x += columns) {
      const Float centre = S::Set(mean[row]), scale = S::Set(rstd[row]);
      const auto normal = [&](auto at, int64_t i) { return (at.Load(x + i) - centre) * scale; };
      const auto g = [&](auto at, int64_t i) { return at.Load(d_y + i) * at.Load(gamma + i); };
      const Float mean_g = S::Set(L::Sum(columns, g) / n);
      const Float mean_product =
          S::Set(L::Sum(columns, [&](auto at, int64_t i) { return g(at, i) * normal(at, i); }) / n);
      L::Each(columns, [&](auto at, int64_t i) {
        L::Put(at, accumulate, d_x + i,
               scale * S::Fma(-normal(at, i), mean_product, g(at, i) - mean_g));
      });
    }
  }
  static void LayerNormScaleGradient(int64_t rows, int64_t columns, int64_t begin, int64_t end,
                                     const float* x, const float* mean, const float* rstd,
                                     const float* d_y, float* d_gamma) {
    L::SumColumns(rows, begin, end, false, d_gamma, [&](auto at, int64_t row, int64_t column) {
      const int64_t i = row * columns + column;
      const Float normal = (at.Load(x + i) - S::Set(mean[row])) * S::Set(rstd[row]);
      return at.Load(d_y + i) * normal;
    });
  }

  static void Lstm(int64_t rows, int64_t hidden, const float* gates, const float* c, float* new_c,
                   float* new_h, float* activated) {
    for (int64_t row = 0; row < rows; ++row) {
      L::Each(hidden, [&](auto at, int64_t j) {
        Float gate[4], cell, tanh_cell, output;
        for (int g = 0; g < 4; ++g) gate[g] = at.Load(gates + g * hidden + j);
        P::Lstm(gate, gate + 1, gate + 2, gate + 3, at.Load(c + j), &cell, &tanh_cell, &output);
        for (int g = 0; g < 4; ++g) at.Store(activated + g * hidden + j, gate[g]);
        at.Store(activated + 4 * hidden + j, tanh_cell);
        at.Store(new_c + j, cell);
        at.Store(new_h + j, output);
      });
      gates += 4 * hidden;
      activated += 5 * hidden;
      c += hidden;
      new_c += hidden;
      new_h += hidden;
    }
  }
  static void LstmGradient(int64_t rows, int64_t hidden, const float* activated, const float* c,
                           const float* d_new_c, const float* d_new_h, float* d_gates, float* d_c) {
    for (int64_t row = 0; row < rows; ++row) {
      L::Each(hidden, [&](auto at, int64_t j) {
        Float gate[5], d_cell;
        for (int g = 0; g < 5; ++g) gate[g] = at.Load(activated + g * hidden + j);
        P::LstmGradient(gate, gate + 1, gate + 2, gate + 3, gate[4], at.Load(c + j),
                        at.Load(d_new_c + j), at.Load(d_new_h + j), &d_cell);
        for (int g = 0; g < 4; ++g) at.Store(d_gates + g * hidden + j, gate[g]);
        at.Store(d_c + j, d_cell);
      });
      activated += 5 * hidden;
      d_gates += 4 * hidden;
      c += hidden;
      d_new_c += hidden;
      d_new_h += hidden;
      d_c += hidden;
    }
  }

  static void Gru(int64_t rows, int64_t hidden, const float* x_gates, const float* h_gates,
                  const float* h, float* new_h, float* activated) {
    for (int64_t row = 0; row < rows; ++row) {
      L::Each(hidden, [&](auto at, int64_t j) {
        Float gate[3], from_h[3], output;
        for (int g = 0; g < 3; ++g) {
          gate[g] = at.Load(x_gates + g * hidden + j);
          from_h[g] = at.Load(h_gates + g * hidden + j);
        }
        P::Gru(gate, gate + 1, gate + 2, from_h[0], from_h[1], from_h[2], at.Load(h + j), &output);
        for (int g = 0; g < 3; ++g) at.Store(activated + g * hidden + j, gate[g]);
        at.Store(activated + 3 * hidden + j, from_h[2]);
        at.Store(new_h + j, output);
      });
      x_gates += 3 * hidden;
      h_gates += 3 * hidden;
      activated += 4 * hidden;
      h += hidden;
      new_h += hidden;
    }
  }
  static void GruGradient(int64_t rows, int64_t hidden, const float* activated, const float* h,
                          const float* d_new_h, float* d_x_gates, float* d_h_gates, float* d_h) {
    for (int64_t row = 0; row < rows; ++row) {
      L::Each(hidden, [&](auto at, int64_t j) {
        Float gate[4], d_h_n, d_previous;
        for (int g = 0; g < 4; ++g) gate[g] = at.Load(activated + g * hidden + j);
        P::GruGradient(gate, gate + 1, gate + 2, gate[3], at.Load(h + j), at.Load(d_new_h + j),
                       &d_h_n, &d_previous);
        for (int g = 0; g < 3; ++g) {
          at.Store(d_x_gates + g * hidden + j, gate[g]);
          at.Store(d_h_gates + g * hidden + j, g < 2 ? gate[g] : d_h_n);
        }
        at.Store(d_h + j, d_previous);
      });
      activated += 4 * hidden;
      d_x_gates += 3 * hidden;
      d_h_gates += 3 * hidden;
      h += hidden;
      d_new_h += hidden;
      d_h += hidden;
    }
  }
};

}  // namespace weft::kernels
