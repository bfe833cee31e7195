// Elementwise kernels and plain sums on one thread, templates on the vector type S.
#pragma once

#include "tensor/kernels_denormals.h"
#include "tensor/kernels_loops.h"
#include "tensor/kernels_switch.h"
#include "tensor/kernels_table.h"

namespace weft::kernels {

template <class S>
struct Elements {
  using Float = typename S::Float;
  using L = Loops<S>;
  using P = Pointwise<S>;
  using O = Optimise<S>;

  static void ActivationGradient(Activation activation, int64_t count, const float* h,
                                 const float* d_h, float* d_z) {
    Switch(activation, [&]<Activation kActivation>() {
      L::Each(count, [&](auto at, int64_t i) {
        at.Store(d_z + i,
                 P::template ActivateGradient<kActivation>(at.Load(h + i), at.Load(d_h + i)));
      });
    });
  }

  static void Apply(Unary op, int64_t count, const float* x, float* y) {
    Switch(op, [&]<Unary kOp>() {
      L::Each(count,
              [&](auto at, int64_t i) { at.Store(y + i, P::template Apply<kOp>(at.Load(x + i))); });
    });
  }
  static void ApplyGradient(Unary op, int64_t count, const float* x, const float* y,
                            const float* d_y, bool accumulate, float* d_x) {
    Switch(op, [&]<Unary kOp>() {
      L::Each(count, [&](auto at, int64_t i) {
        L::Put(at, accumulate, d_x + i,
               P::template ApplyGradient<kOp>(at.Load(x + i), at.Load(y + i), at.Load(d_y + i)));
      });
    });
  }

  // body(access, index into a, partner) for every vector of a and what meets it.
  template <class F>
  [[gnu::always_inline]] static void EachPair(Broadcasting broadcast, int64_t rows, int64_t columns,
                                              const float* b, F&& body) {
    if (broadcast == Broadcasting::kNone) {
      L::Each(rows * columns, [&](auto at, int64_t i) { body(at, i, at.Load(b + i)); });
      return;
    }
    if (broadcast == Broadcasting::kScalar) {
      const Float partner = S::Set(*b);
      L::Each(rows * columns, [&](auto at, int64_t i) { body(at, i, partner); });
      return;
    }
    for (int64_t row = 0; row < rows; ++row) {
      const bool whole_row = broadcast == Broadcasting::kRow;
      const Float same = S::Set(whole_row ? 0.0f : b[row]);
      L::Each(columns, [&](auto at, int64_t i) {
        body(at, row * columns + i, whole_row ? at.Load(b + i) : same);
      });
    }
  }

  static void Combine(Binary op, Broadcasting broadcast, int64_t rows, int64_t columns,
                      const float* a, const float* b, float* y) {
    Switch(op, [&]<Binary kOp>() {
      EachPair(broadcast, rows, columns, b, [&](auto at, int64_t i, Float partner) {
        at.Store(y + i, P::template Combine<kOp>(at.Load(a + i), partner));
      });
    });
  }
  static void GradientOfFirst(const BinaryWork& work, bool accumulate, float* d_a) {
    Switch(work.op, [&]<Binary kOp>() {
      EachPair(work.broadcast, work.rows, work.columns, work.b,
               [&](auto at, int64_t i, Float partner) {
                 L::Put(at, accumulate, d_a + i,
                        P::template GradientOfFirst<kOp>(at.Load(work.a + i), partner,
                                                         at.Load(work.d_y + i)));
               });
    });
  }
  static void GradientOfSecond(const BinaryWork& work, bool accumulate, float* d_b) {
    Switch(work.op, [&]<Binary kOp>() {
      L::Each(work.rows * work.columns, [&](auto at, int64_t i) {
        L::Put(at, accumulate, d_b + i, Second<kOp>(work, at, i, at.Load(work.b + i)));
      });
    });
  }
  static float SumOfSecond(const BinaryWork& work) {
    float sum = 0;
    Switch(work.op, [&]<Binary kOp>() {
      const Float partner = S::Set(*work.b);
      sum = L::Sum(work.rows * work.columns,
                   [&](auto at, int64_t i) { return Second<kOp>(work, at, i, partner); });
    });
    return sum;
  }
  static void SumLastOfSecond(const BinaryWork& work, bool accumulate, float* d_b) {
    Switch(work.op, [&]<Binary kOp>() {
      for (int64_t row = 0; row < work.rows; ++row) {
        const Float partner = S::Set(work.b[row]);
        const float sum = L::Sum(work.columns, [&](auto at, int64_t i) {
          return Second<kOp>(work, at, row * work.columns + i, partner);
        });
        d_b[row] = accumulate ? d_b[row] + sum : sum;
      }
    });
  }
  static void SumRowsOfSecond(const BinaryWork& work, int64_t begin, int64_t end, bool accumulate,
                              float* d_b) {
    Switch(work.op, [&]<Binary kOp>() {
      L::SumColumns(
          work.rows, begin, end, accumulate, d_b, [&](auto at, int64_t row, int64_t column) {
            return Second<kOp>(work, at, row * work.columns + column, at.Load(work.b + column));
          });
    });
  }

  static void Affine(int64_t count, float scale, float shift, const float* x, float* y) {
    L::Each(count, [&](auto at, int64_t i) {
      at.Store(y + i, at.Load(x + i) * S::Set(scale) + S::Set(shift));
    });
  }
  static void Clamp(int64_t count, float low, float high, const float* x, float* y) {
    L::Each(count, [&](auto at, int64_t i) {
      at.Store(y + i, P::Clamp(at.Load(x + i), S::Set(low), S::Set(high)));
    });
  }
  static void ClampGradient(int64_t count, float low, float high, const float* x, const float* d_y,
                            bool accumulate, float* d_x) {
    L::Each(count, [&](auto at, int64_t i) {
      L::Put(at, accumulate, d_x + i,
             P::ClampGradient(at.Load(x + i), S::Set(low), S::Set(high), at.Load(d_y + i)));
    });
  }

  static float Sum(int64_t count, const float* x) {
    return L::Sum(count, [&](auto at, int64_t i) { return at.Load(x + i); });
  }
  static double SumSquares(int64_t count, const float* x) {
    return L::template SumBlocks<double>(count, [&](int64_t begin, int64_t end) {
      return S::SumSquaresBlock(x + begin, end - begin);
    });
  }
  static void SumLast(int64_t rows, int64_t columns, const float* x, float* y) {
    for (int64_t row = 0; row < rows; ++row) y[row] = Sum(columns, x + row * columns);
  }
  template <class T>  // float, or uint16_t for bf16
  static void SumRows(int64_t rows, int64_t columns, int64_t begin, int64_t end, const T* x,
                      bool accumulate, float* y) {
    L::SumColumns(rows, begin, end, accumulate, y, [&](auto at, int64_t row, int64_t column) {
      return at.Load(x + row * columns + column);
    });
  }
  static int64_t FirstNonFinite(int64_t count, const float* x) {
    const auto exponent = S::SetInt(0x7f800000);
    int64_t found = -1;
    for (int64_t begin = 0; begin < count && found < 0; begin += L::kBlock) {
      const int64_t end = begin + L::kBlock < count ? begin + L::kBlock : count;
      auto bad = S::SetInt(0) != S::SetInt(0);
      L::Each(end - begin, [&](auto at, int64_t i) {
        bad = bad | ((S::Bits(at.Load(x + begin + i)) & exponent) == exponent);
      });
      if (!S::Any(bad)) continue;
      for (int64_t i = end; i-- > begin;) {
        if ((__builtin_bit_cast(uint32_t, x[i]) & 0x7f800000u) == 0x7f800000u) found = i;
      }
    }
    return found;
  }

  static void Adam(int64_t count, const AdamFactors& factors, const float* gradient,
                   float* parameter, float* first_moment, float* second_moment) {
    const FlushDenormals flush;
    const AdamFactors f = factors;  // a copy cannot alias what is written
    L::Each(count, [&](auto at, int64_t i) {
      Float p = at.Load(parameter + i);
      Float m = at.Load(first_moment + i);
      Float v = at.Load(second_moment + i);
      O::Adam(f, at.Load(gradient + i), &p, &m, &v);
      at.Store(parameter + i, p);
      at.Store(first_moment + i, m);
      at.Store(second_moment + i, v);
    });
  }
  static void RmsProp(int64_t count, const RmsPropFactors& factors, const float* gradient,
                      float* parameter, float* square_average, float* momentum_buffer) {
    const FlushDenormals flush;
    const RmsPropFactors f = factors;
    const auto run = [&]<bool kMomentum>() {
      L::Each(count, [&](auto at, int64_t i) {
        Float p = at.Load(parameter + i);
        Float v = at.Load(square_average + i);
        Float m = kMomentum ? at.Load(momentum_buffer + i) : p;
        O::template RmsProp<kMomentum>(f, at.Load(gradient + i), &p, &v, &m);
        at.Store(parameter + i, p);
        at.Store(square_average + i, v);
        if constexpr (kMomentum) at.Store(momentum_buffer + i, m);
      });
    };
    f.momentum != 0 ? run.template operator()<true>() : run.template operator()<false>();
  }
  static void Sgd(int64_t count, const SgdFactors& factors, const float* gradient, float* parameter,
                  float* momentum_buffer) {
    const FlushDenormals flush;
    const SgdFactors f = factors;
    const auto run = [&]<bool kMomentum>() {
      L::Each(count, [&](auto at, int64_t i) {
        Float p = at.Load(parameter + i);
        Float m = kMomentum ? at.Load(momentum_buffer + i) : p;
        O::template Sgd<kMomentum>(f, at.Load(gradient + i), &p, &m);
        at.Store(parameter + i, p);
        if constexpr (kMomentum) at.Store(momentum_buffer + i, m);
      });
    };
    f.momentum != 0 ? run.template operator()<true>() : run.template operator()<false>();
  }
  static void Lerp(int64_t count, float tau, const float* source, float* target) {
    L::Each(count, [&](auto at, int64_t i) {
      const Float t = at.Load(target + i);
      at.Store(target + i, S::Fma(S::Set(tau), at.Load(source + i) - t, t));
    });
  }

 private:
  template <Binary kOp, class Access>
  static Float Second(const BinaryWork& work, Access at, int64_t i, Float partner) {
    return P::template GradientOfSecond<kOp>(at.Load(work.a + i), partner, at.Load(work.d_y + i));
  }
};

}  // namespace weft::kernels
