// Operations on tensors, the vocabulary that networks and losses are written in. Each runs at once
// on the calling thread's context and, while a Tape records and an input is tracked, appends itself
// to the tape. All are f32 unless said; shapes are checked and an Error(kInvalidArgument) names the
// op and both shapes.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "tensor/kernels.h"
#include "tensor/tensor.h"

namespace weft {

// x [.., K], w [K, N] in panels, b [N] or undefined -> activation(x w + b) [.., N].
Tensor Dense(const Tensor& x, const Tensor& w, const Tensor& b,
             Activation activation = Activation::kNone);

// x [B, C, H, W], w [C*k*k, OC] in panels (rows ordered channel, kernel row, kernel column), b [OC]
// -> [B, OC, OH, OW].
Tensor Conv2d(const Tensor& x, const Tensor& w, const Tensor& b, int64_t kernel, int64_t stride,
              int64_t pad, Activation activation = Activation::kNone);

Tensor Apply(Unary op, const Tensor& x);
inline Tensor Neg(const Tensor& x) {
  return Apply(Unary::kNegate, x);
}
inline Tensor Exp(const Tensor& x) {
  return Apply(Unary::kExp, x);
}
inline Tensor Log(const Tensor& x) {
  return Apply(Unary::kLog, x);
}
inline Tensor Sqrt(const Tensor& x) {
  return Apply(Unary::kSqrt, x);
}
inline Tensor Square(const Tensor& x) {
  return Apply(Unary::kSquare, x);
}
inline Tensor Abs(const Tensor& x) {
  return Apply(Unary::kAbs, x);
}
inline Tensor Tanh(const Tensor& x) {
  return Apply(Unary::kTanh, x);
}
inline Tensor Relu(const Tensor& x) {
  return Apply(Unary::kRelu, x);
}
inline Tensor Sigmoid(const Tensor& x) {
  return Apply(Unary::kSigmoid, x);
}
inline Tensor Softplus(const Tensor& x) {
  return Apply(Unary::kSoftplus, x);
}

// Binary ops: b has a's shape, or one element, or the shape of a's trailing dimension ([A] with
// [.., A]), or a's leading dimensions with a last dimension of 1 ([B, 1] with [B, A]). The result
// has a's shape.
Tensor Apply(Binary op, const Tensor& a, const Tensor& b);
inline Tensor Add(const Tensor& a, const Tensor& b) {
  return Apply(Binary::kAdd, a, b);
}
inline Tensor Sub(const Tensor& a, const Tensor& b) {
  return Apply(Binary::kSubtract, a, b);
}
inline Tensor Mul(const Tensor& a, const Tensor& b) {
  return Apply(Binary::kMultiply, a, b);
}
inline Tensor Div(const Tensor& a, const Tensor& b) {
  return Apply(Binary::kDivide, a, b);
}
inline Tensor Minimum(const Tensor& a, const Tensor& b) {
  return Apply(Binary::kMinimum, a, b);
}
inline Tensor Maximum(const Tensor& a, const Tensor& b) {
  return Apply(Binary::kMaximum, a, b);
}

Tensor Affine(const Tensor& x, float scale, float shift);  // x * scale + shift
inline Tensor Scale(const Tensor& x, float scale) {
  return Affine(x, scale, 0);
}
inline Tensor Shift(const Tensor& x, float shift) {
  return Affine(x, 1, shift);
}
Tensor Clamp(const Tensor& x, float low, float high);
// mask u8 of x's shape: mask ? a : b.
Tensor Select(const Tensor& mask, const Tensor& a, const Tensor& b);

Tensor Sum(const Tensor& x);      // -> [] (rank 0)
Tensor Mean(const Tensor& x);     // -> []
Tensor SumLast(const Tensor& x);  // [.., A] -> [..]
Tensor Softmax(const Tensor& x);  // over the last dimension
Tensor LogSoftmax(const Tensor& x);
// x [.., A], index i64 [..] in [0, A) -> x at the index [..].
Tensor GatherLast(const Tensor& x, const Tensor& index);
Tensor ArgMaxLast(const Tensor& x);  // [.., A] -> i64 [..]; lowest index wins ties; no gradient
Tensor MaxLast(const Tensor& x);     // [.., A] -> [..]; no gradient

Tensor ConcatLast(std::span<const Tensor> parts);               // [.., A_i] -> [.., sum A_i]
Tensor SliceLast(const Tensor& x, int64_t begin, int64_t end);  // [.., A] -> [.., end - begin]
Tensor SliceRows(const Tensor& x, int64_t begin, int64_t end);  // dimension 0, a tracked view
Tensor StackRows(std::span<const Tensor> parts);                // each [B, ..] -> [count, B, ..]
Tensor Reshape(const Tensor& x, const Shape& shape);            // a tracked view
Tensor GatherRows(
    const Tensor& x,
    const Tensor& index);  // x [R, ..] any dtype, index i64 [B] -> [B, ..]; no gradient

Tensor LayerNorm(const Tensor& x, const Tensor& gamma, const Tensor& beta, float epsilon = 1e-5f);
// gates [B, 4H] before activation, c [B, H] -> {h, c}.
std::pair<Tensor, Tensor> LstmCell(const Tensor& gates, const Tensor& c);
// x_gates, h_gates [B, 3H], h [B, H] -> h.
Tensor GruCell(const Tensor& x_gates, const Tensor& h_gates, const Tensor& h);

// Between f32, f64, bf16, u8, i64; gradient only f32 <-> bf16.
Tensor Cast(const Tensor& x, DType dtype);

}  // namespace weft
