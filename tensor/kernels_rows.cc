// Row-wise kernels, work split over threads by rows.
#include "tensor/kernels_split.h"

namespace weft::kernels {

void MaxLast(const Context& context, int64_t rows, int64_t columns, const float* x, float* y,
             int64_t* argmax) {
  const KernelTable& table = TableOf(context);
  SplitRows(context, rows, columns, kStreamCost, [&](int64_t begin, int64_t end) {
    table.max_last(end - begin, columns, x + begin * columns, y + begin,
                   argmax == nullptr ? nullptr : argmax + begin);
  });
}

void Softmax(const Context& context, int64_t rows, int64_t columns, const float* x, float* y) {
  const KernelTable& table = TableOf(context);
  SplitRows(context, rows, columns, kFunctionCost, [&](int64_t begin, int64_t end) {
    table.softmax(end - begin, columns, x + begin * columns, y + begin * columns);
  });
}

void SoftmaxGradient(const Context& context, int64_t rows, int64_t columns, const float* y,
                     const float* d_y, bool accumulate, float* d_x) {
  const KernelTable& table = TableOf(context);
  SplitRows(context, rows, columns, kStreamCost, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * columns;
    table.softmax_gradient(end - begin, columns, y + at, d_y + at, accumulate, d_x + at);
  });
}

void LogSoftmax(const Context& context, int64_t rows, int64_t columns, const float* x, float* y) {
  const KernelTable& table = TableOf(context);
  SplitRows(context, rows, columns, kFunctionCost, [&](int64_t begin, int64_t end) {
    table.log_softmax(end - begin, columns, x + begin * columns, y + begin * columns);
  });
}

void LogSoftmaxGradient(const Context& context, int64_t rows, int64_t columns, const float* y,
                        const float* d_y, bool accumulate, float* d_x) {
  const KernelTable& table = TableOf(context);
  SplitRows(context, rows, columns, kFunctionCost, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * columns;
    table.log_softmax_gradient(end - begin, columns, y + at, d_y + at, accumulate, d_x + at);
  });
}

void LayerNorm(const Context& context, int64_t rows, int64_t columns, const float* x,
               const float* gamma, const float* beta, float epsilon, Output y, float* mean,
               float* rstd) {
  const KernelTable& table = TableOf(context);
  SplitRows(context, rows, columns, 2 * kStreamCost, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * columns;
    table.layer_norm(end - begin, columns, x + at, gamma, beta, epsilon, y.At(at), y.bf16,
                     mean + begin, rstd + begin);
  });
}

void LayerNormGradient(const Context& context, int64_t rows, int64_t columns, const float* x,
                       const float* gamma, const float* mean, const float* rstd, const float* d_y,
                       bool accumulate, float* d_x, float* d_gamma, float* d_beta) {
  const KernelTable& table = TableOf(context);
  if (d_x != nullptr) {
    SplitRows(context, rows, columns, 2 * kStreamCost, [&](int64_t begin, int64_t end) {
      const int64_t at = begin * columns;
      table.layer_norm_gradient(end - begin, columns, x + at, gamma, mean + begin, rstd + begin,
                                d_y + at, accumulate, d_x + at);
    });
  }
  if (d_gamma != nullptr) {
    Split(context, columns, 64, kStreamCost * static_cast<double>(rows),
          [&](int64_t begin, int64_t end) {
            table.layer_norm_scale_gradient(rows, columns, begin, end, x, mean, rstd, d_y, d_gamma);
          });
  }
  if (d_beta != nullptr) SumRows(context, rows, columns, d_y, false, d_beta);
}

void LstmCell(const Context& context, int64_t rows, int64_t hidden, const float* gates,
              const float* c, float* new_c, float* new_h, float* activated) {
  const KernelTable& table = TableOf(context);
  SplitRows(context, rows, hidden, 5 * kFunctionCost, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * hidden;
    table.lstm(end - begin, hidden, gates + 4 * at, c + at, new_c + at, new_h + at,
               activated + 5 * at);
  });
}

void LstmCellGradient(const Context& context, int64_t rows, int64_t hidden, const float* activated,
                      const float* c, const float* d_new_c, const float* d_new_h, float* d_gates,
                      float* d_c) {
  const KernelTable& table = TableOf(context);
  SplitRows(context, rows, hidden, 4 * kStreamCost, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * hidden;
    table.lstm_gradient(end - begin, hidden, activated + 5 * at, c + at, d_new_c + at, d_new_h + at,
                        d_gates + 4 * at, d_c + at);
  });
}

void GruCell(const Context& context, int64_t rows, int64_t hidden, const float* x_gates,
             const float* h_gates, const float* h, float* new_h, float* activated) {
  const KernelTable& table = TableOf(context);
  SplitRows(context, rows, hidden, 3 * kFunctionCost, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * hidden;
    table.gru(end - begin, hidden, x_gates + 3 * at, h_gates + 3 * at, h + at, new_h + at,
              activated + 4 * at);
  });
}

void GruCellGradient(const Context& context, int64_t rows, int64_t hidden, const float* activated,
                     const float* h, const float* d_new_h, float* d_x_gates, float* d_h_gates,
                     float* d_h) {
  const KernelTable& table = TableOf(context);
  SplitRows(context, rows, hidden, 4 * kStreamCost, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * hidden;
    table.gru_gradient(end - begin, hidden, activated + 4 * at, h + at, d_new_h + at,
                       d_x_gates + 3 * at, d_h_gates + 3 * at, d_h + at);
  });
}

}  // namespace weft::kernels
