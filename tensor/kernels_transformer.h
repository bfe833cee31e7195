// What a transformer does to its rows besides products: norms, rotary positions, gated activations,
// and what the output layer makes of its logits. Under the law of kernels.h; sums of a row go over
// its elements in the order of SumLast. T tokens, C columns, D elements of a head. Outputs that a
// product reads next come as f32 or bf16.
#pragma once

#include <cstdint>

#include "tensor/kernels.h"
#include "tensor/tensor.h"

namespace weft::kernels {

// y = x / sqrt(mean(x^2) + epsilon) * (w + offset) (Zhang and Sennrich 2019; offset 1 in Gemma).
// Rows of `columns` elements begin `stride` apart in x; y is contiguous and may be x when stride is
// columns. rstd [T] is kept for the gradient.
void RmsNorm(const Context& context, int64_t rows, int64_t columns, int64_t stride, const float* x,
             const float* w, float offset, float epsilon, Output y, float* rstd);
// d_x (+)=, contiguous; d_w += (null: not wanted). d_y contiguous.
void RmsNormGradient(const Context& context, int64_t rows, int64_t columns, const float* x,
                     const float* w, float offset, const float* rstd, const float* d_y,
                     bool accumulate, float* d_x, float* d_w);

// Turns the first 2 * pairs elements of each of `heads` heads of D elements in place: element i and
// i + pairs by the angle of table [positions][2 * pairs] (cosines, then sines). Tokens begin
// `stride` apart. inverse turns back: the gradient.
void Rotate(const Context& context, int64_t tokens, int64_t heads, int64_t head_dimension,
            int64_t pairs, int64_t stride, const float* table, const int32_t* positions,
            bool inverse, float* x);

// gated: x [T, 2C] -> act(x[:, :C]) * x[:, C:]; else x [T, C] -> act(x).
void Gate(const Context& context, int64_t rows, int64_t columns, Unary activation, bool gated,
          const float* x, Output y);
void GateGradient(const Context& context, int64_t rows, int64_t columns, Unary activation,
                  bool gated, const float* x, const float* d_y, Output d_x);

// Of each row of logits x [T, V], scaled in place by `scale`, or before it by cap tanh(x / cap):
// log_sum = log sum exp, entropy of the distribution (may be null).
void LogitStatistics(const Context& context, int64_t rows, int64_t columns, float scale, float cap,
                     float* x, float* log_sum, float* entropy);
// d_x = d_log_probability (1[target] - p) - d_entropy p (log p + entropy), through the scale and
// the cap; x as LogitStatistics left it. d_entropy may be null. A target of -1: no token.
void LogitGradient(const Context& context, int64_t rows, int64_t columns, float scale, float cap,
                   const float* x, const float* log_sum, const float* entropy,
                   const int32_t* target, const float* d_log_probability, const float* d_entropy,
                   Output d_x);

}  // namespace weft::kernels
