#include "tensor/kernels_transformer.h"

#include "tensor/kernels_split.h"

namespace weft::kernels {

void RmsNorm(const Context& context, int64_t rows, int64_t columns, int64_t stride, const float* x,
             const float* w, float offset, float epsilon, Output y, float* rstd) {
  const KernelTable& table = TableOf(context);
  SplitRows(context, rows, columns, 2 * kStreamCost, [&](int64_t begin, int64_t end) {
    table.rms_norm(end - begin, columns, stride, x + begin * stride, w, offset, epsilon,
                   y.At(begin * columns), y.bf16, rstd + begin);
  });
}

void RmsNormGradient(const Context& context, int64_t rows, int64_t columns, const float* x,
                     const float* w, float offset, const float* rstd, const float* d_y,
                     bool accumulate, float* d_x, float* d_w) {
  const KernelTable& table = TableOf(context);
  if (d_w != nullptr) {
    Split(context, columns, 64, 2 * kStreamCost * static_cast<double>(rows),
          [&](int64_t begin, int64_t end) {
            table.rms_norm_scale_gradient(rows, columns, begin, end, x, rstd, d_y, d_w);
          });
  }
  SplitRows(context, rows, columns, 3 * kStreamCost, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * columns;
    table.rms_norm_gradient(end - begin, columns, x + at, w, offset, rstd + begin, d_y + at,
                            accumulate, d_x + at);
  });
}

void Rotate(const Context& context, int64_t tokens, int64_t heads, int64_t head_dimension,
            int64_t pairs, int64_t stride, const float* table, const int32_t* positions,
            bool inverse, float* x) {
  const KernelTable& kernels = TableOf(context);
  SplitRows(context, tokens, heads * pairs, 2 * kStreamCost, [&](int64_t begin, int64_t end) {
    kernels.rotate(end - begin, heads, head_dimension, pairs, stride, table, positions + begin,
                   inverse, x + begin * stride);
  });
}

void Gate(const Context& context, int64_t rows, int64_t columns, Unary activation, bool gated,
          const float* x, Output y) {
  const KernelTable& table = TableOf(context);
  SplitRows(context, rows, columns, kFunctionCost, [&](int64_t begin, int64_t end) {
    table.gate(end - begin, columns, activation, gated, x + begin * columns * (gated ? 2 : 1),
               y.At(begin * columns), y.bf16);
  });
}

void GateGradient(const Context& context, int64_t rows, int64_t columns, Unary activation,
                  bool gated, const float* x, const float* d_y, Output d_x) {
  const KernelTable& table = TableOf(context);
  SplitRows(context, rows, columns, 2 * kFunctionCost, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * columns * (gated ? 2 : 1);
    table.gate_gradient(end - begin, columns, activation, gated, x + at, d_y + begin * columns,
                        d_x.At(at), d_x.bf16);
  });
}

void LogitStatistics(const Context& context, int64_t rows, int64_t columns, float scale, float cap,
                     float* x, float* log_sum, float* entropy) {
  const KernelTable& table = TableOf(context);
  SplitRows(context, rows, columns, kFunctionCost, [&](int64_t begin, int64_t end) {
    table.logit_statistics(end - begin, columns, scale, cap, x + begin * columns, log_sum + begin,
                           entropy == nullptr ? nullptr : entropy + begin);
  });
}

void LogitGradient(const Context& context, int64_t rows, int64_t columns, float scale, float cap,
                   const float* x, const float* log_sum, const float* entropy,
                   const int32_t* target, const float* d_log_probability, const float* d_entropy,
                   Output d_x) {
  const KernelTable& table = TableOf(context);
  const auto from = [](const float* p, int64_t begin) { return p == nullptr ? p : p + begin; };
  SplitRows(context, rows, columns, kFunctionCost, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * columns;
    table.logit_gradient(end - begin, columns, scale, cap, x + at, log_sum + begin,
                         from(entropy, begin), target + begin, d_log_probability + begin,
                         from(d_entropy, begin), d_x.At(at), d_x.bf16);
  });
}

}  // namespace weft::kernels
