// What happens to one element, written once over a vector type (kernels_math.h says which):
// activations, unary and binary operations, recurrent cells, optimisers, each with its derivative.
// Loops are elsewhere.
#pragma once

#include "tensor/kernels.h"
#include "tensor/kernels_math.h"

namespace weft::kernels {

template <class S>
struct Pointwise {
  using M = Math<S>;
  using Float = typename S::Float;

  static Float Set(float value) { return S::Set(value); }
  static Float Fma(Float a, Float b, Float c) { return S::Fma(a, b, c); }
  static Float Relu(Float x) { return S::Max(Set(0.0f), x); }  // NaN stays
  static Float TanhGradient(Float h, Float d) { return Fma(-d * h, h, d); }
  static Float ReluGradient(Float h, Float d) { return h <= Set(0.0f) ? Set(0.0f) : d; }
  static Float SigmoidGradient(Float h, Float d) { return d * h * (Set(1.0f) - h); }

  template <Activation kActivation>
  static Float Activate(Float z) {
    if constexpr (kActivation == Activation::kTanh) return M::Tanh(z);
    if constexpr (kActivation == Activation::kRelu) return Relu(z);
    if constexpr (kActivation == Activation::kSigmoid) return M::Sigmoid(z);
    return z;
  }
  // d_z from the output h and its gradient d.
  template <Activation kActivation>
  static Float ActivateGradient(Float h, Float d) {
    if constexpr (kActivation == Activation::kTanh) return TanhGradient(h, d);
    if constexpr (kActivation == Activation::kRelu) return ReluGradient(h, d);
    if constexpr (kActivation == Activation::kSigmoid) return SigmoidGradient(h, d);
    return d;
  }

  template <Unary kOp>
  static Float Apply(Float x) {
    if constexpr (kOp == Unary::kNegate) return -x;
    if constexpr (kOp == Unary::kExp) return M::Exp(x);
    if constexpr (kOp == Unary::kLog) return M::Log(x);
    if constexpr (kOp == Unary::kSqrt) return S::Sqrt(x);
    if constexpr (kOp == Unary::kSquare) return x * x;
    if constexpr (kOp == Unary::kAbs) return M::Abs(x);
    if constexpr (kOp == Unary::kTanh) return M::Tanh(x);
    if constexpr (kOp == Unary::kRelu) return Relu(x);
    if constexpr (kOp == Unary::kSigmoid) return M::Sigmoid(x);
    if constexpr (kOp == Unary::kSoftplus) return M::Softplus(x);
    if constexpr (kOp == Unary::kElu) {
      return x > Set(0.0f) ? x : M::Expm1(x > Set(0.0f) ? Set(0.0f) : x);
    }
    if constexpr (kOp == Unary::kGelu) return M::Gelu(x);
    if constexpr (kOp == Unary::kGeluErf) return M::GeluErf(x);
    if constexpr (kOp == Unary::kSilu) return x * M::Sigmoid(x);
    if constexpr (kOp == Unary::kReciprocal) return Set(1.0f) / x;
    if constexpr (kOp == Unary::kSin) return M::Sin(x);
    if constexpr (kOp == Unary::kCos) return M::Cos(x);
  }
  // d times the derivative, from x and y = op(x).
  template <Unary kOp>
  static Float ApplyGradient(Float x, Float y, Float d) {
    if constexpr (kOp == Unary::kNegate) return -d;
    if constexpr (kOp == Unary::kExp) return d * y;
    if constexpr (kOp == Unary::kLog) return d / x;
    if constexpr (kOp == Unary::kSqrt) return Set(0.5f) * d / y;
    if constexpr (kOp == Unary::kSquare) return (x + x) * d;
    if constexpr (kOp == Unary::kAbs) {
      return x > Set(0.0f) ? d : (x < Set(0.0f) ? -d : x * d);  // x d: zero at 0, NaN at NaN
    }
    if constexpr (kOp == Unary::kTanh) return TanhGradient(y, d);
    if constexpr (kOp == Unary::kRelu) return ReluGradient(y, d);
    if constexpr (kOp == Unary::kSigmoid) return SigmoidGradient(y, d);
    if constexpr (kOp == Unary::kSoftplus) return d * M::Sigmoid(x);
    if constexpr (kOp == Unary::kElu) return x > Set(0.0f) ? d : Fma(d, y, d);
    if constexpr (kOp == Unary::kGelu) return d * M::GeluGradient(x);
    if constexpr (kOp == Unary::kGeluErf) return d * M::GeluErfGradient(x);
    if constexpr (kOp == Unary::kSilu) {
      const Float s = M::Sigmoid(x);
      return d * Fma(x * s, Set(1.0f) - s, s);
    }
    if constexpr (kOp == Unary::kReciprocal) return -(d * y * y);
    if constexpr (kOp == Unary::kSin) return d * M::Cos(x);
    if constexpr (kOp == Unary::kCos) return -(d * M::Sin(x));
  }

  template <Binary kOp>
  static Float Combine(Float a, Float b) {
    if constexpr (kOp == Binary::kAdd) return a + b;
    if constexpr (kOp == Binary::kSubtract) return a - b;
    if constexpr (kOp == Binary::kMultiply) return a * b;
    if constexpr (kOp == Binary::kDivide) return a / b;
    if constexpr (kOp == Binary::kMinimum) return ((a < b) | (a != a)) ? a : b;
    if constexpr (kOp == Binary::kMaximum) return ((a > b) | (a != a)) ? a : b;
  }
  template <Binary kOp>
  static Float GradientOfFirst(Float a, Float b, Float d) {
    if constexpr (kOp == Binary::kAdd || kOp == Binary::kSubtract) return d;
    if constexpr (kOp == Binary::kMultiply) return d * b;
    if constexpr (kOp == Binary::kDivide) return d / b;
    if constexpr (kOp == Binary::kMinimum) {
      return a < b ? d : (a == b ? Set(0.5f) * d : Set(0.0f));
    }
    if constexpr (kOp == Binary::kMaximum) {
      return a > b ? d : (a == b ? Set(0.5f) * d : Set(0.0f));
    }
  }
  template <Binary kOp>
  static Float GradientOfSecond(Float a, Float b, Float d) {
    if constexpr (kOp == Binary::kAdd) return d;
    if constexpr (kOp == Binary::kSubtract) return -d;
    if constexpr (kOp == Binary::kMultiply) return d * a;
    if constexpr (kOp == Binary::kDivide) return -(d * (a / b / b));
    if constexpr (kOp == Binary::kMinimum) {
      return a < b ? Set(0.0f) : (a == b ? Set(0.5f) * d : d);
    }
    if constexpr (kOp == Binary::kMaximum) {
      return a > b ? Set(0.0f) : (a == b ? Set(0.5f) * d : d);
    }
  }

  static Float Clamp(Float x, Float low, Float high) { return S::Min(high, S::Max(low, x)); }
  static Float ClampGradient(Float x, Float low, Float high, Float d) {
    return ((x >= low) & (x <= high)) ? d : Set(0.0f);
  }

  // i f g o on entry the sums, on return the activated gates.
  static void Lstm(Float* i, Float* f, Float* g, Float* o, Float c, Float* new_c, Float* tanh_c,
                   Float* new_h) {
    *i = M::Sigmoid(*i);
    *f = M::Sigmoid(*f);
    *g = M::Tanh(*g);
    *o = M::Sigmoid(*o);
    *new_c = Fma(*f, c, *i * *g);
    *tanh_c = M::Tanh(*new_c);
    *new_h = *o * *tanh_c;
  }
  // i f g o on entry the activated gates, on return the gradients of the sums.
  static void LstmGradient(Float* i, Float* f, Float* g, Float* o, Float tanh_c, Float c,
                           Float d_new_c, Float d_new_h, Float* d_c) {
    const Float d_cell = d_new_c + TanhGradient(tanh_c, d_new_h * *o);
    const Float d_i = SigmoidGradient(*i, d_cell * *g);
    *d_c = d_cell * *f;
    *f = SigmoidGradient(*f, d_cell * c);
    *g = TanhGradient(*g, d_cell * *i);
    *o = SigmoidGradient(*o, d_new_h * tanh_c);
    *i = d_i;
  }

  // r z n on entry the sums of x, on return the activated gates; h_r h_z h_n the sums of h.
  static void Gru(Float* r, Float* z, Float* n, Float h_r, Float h_z, Float h_n, Float h,
                  Float* new_h) {
    *r = M::Sigmoid(*r + h_r);
    *z = M::Sigmoid(*z + h_z);
    *n = M::Tanh(Fma(*r, h_n, *n));
    *new_h = Fma(*z, h - *n, *n);
  }
  // r z n on entry the activated gates, on return the gradients of the sums of x; d_h_n that of
  // h_n.
  static void GruGradient(Float* r, Float* z, Float* n, Float h_n, Float h, Float d_new_h,
                          Float* d_h_n, Float* d_h) {
    const Float d_n = TanhGradient(*n, d_new_h * (Set(1.0f) - *z));
    *d_h = d_new_h * *z;
    *d_h_n = d_n * *r;
    *r = SigmoidGradient(*r, d_n * h_n);
    *z = SigmoidGradient(*z, d_new_h * (h - *n));
    *n = d_n;
  }
};

// The constants of one optimiser step, made once per call in double.
struct AdamFactors {
  float scale, one_minus_beta1, beta2, one_minus_beta2, epsilon, keep, step_size, root_scale;
};
struct RmsPropFactors {
  float scale, alpha, one_minus_alpha, epsilon, momentum, weight_decay, learning_rate;
  bool epsilon_inside;
};
struct SgdFactors {
  float scale, momentum, one_minus_dampening, weight_decay, learning_rate;
  bool nesterov, first;
};
AdamFactors FactorsOf(const AdamStep& step);
RmsPropFactors FactorsOf(const RmsPropStep& step);
SgdFactors FactorsOf(const SgdStep& step);

template <class S>
struct Optimise {
  using Float = typename S::Float;
  static Float Set(float value) { return S::Set(value); }
  static Float Fma(Float a, Float b, Float c) { return S::Fma(a, b, c); }

  // Kingma and Ba 2015, algorithm 1, with the corrections folded into two constants; Loshchilov and
  // Hutter 2019 decay.
  static void Adam(const AdamFactors& f, Float gradient, Float* parameter, Float* first,
                   Float* second) {
    const Float g = gradient * Set(f.scale);
    *first = Fma(Set(f.one_minus_beta1), g - *first, *first);
    *second = Fma(Set(f.one_minus_beta2) * g, g, *second * Set(f.beta2));
    const Float root = Fma(S::Sqrt(*second), Set(f.root_scale), Set(f.epsilon));
    *parameter = Fma(Set(-f.step_size), *first / root, *parameter * Set(f.keep));
  }

  template <bool kMomentum>
  static void RmsProp(const RmsPropFactors& f, Float gradient, Float* parameter,
                      Float* square_average, Float* momentum) {
    const Float g = Fma(Set(f.weight_decay), *parameter, gradient * Set(f.scale));
    *square_average = Fma(Set(f.one_minus_alpha) * g, g, *square_average * Set(f.alpha));
    const Float root = f.epsilon_inside ? S::Sqrt(*square_average + Set(f.epsilon))
                                        : S::Sqrt(*square_average) + Set(f.epsilon);
    Float direction = g / root;
    if constexpr (kMomentum) direction = *momentum = Fma(Set(f.momentum), *momentum, direction);
    *parameter = Fma(Set(-f.learning_rate), direction, *parameter);
  }

  template <bool kMomentum>
  static void Sgd(const SgdFactors& f, Float gradient, Float* parameter, Float* momentum) {
    const Float g = Fma(Set(f.weight_decay), *parameter, gradient * Set(f.scale));
    Float direction = g;
    if constexpr (kMomentum) {
      *momentum = f.first ? g : Fma(Set(f.one_minus_dampening), g, *momentum * Set(f.momentum));
      direction = f.nesterov ? Fma(Set(f.momentum), *momentum, g) : *momentum;
    }
    *parameter = Fma(Set(-f.learning_rate), direction, *parameter);
  }
};

}  // namespace weft::kernels
