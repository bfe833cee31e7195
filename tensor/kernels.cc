#include "tensor/kernels.h"

#include <cstring>

#include "tensor/kernels_split.h"

namespace weft {

const char* Name(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return "none";
    case Activation::kTanh:
      return "tanh";
    case Activation::kRelu:
      return "relu";
    case Activation::kSigmoid:
      return "sigmoid";
  }
  return "unknown";
}

namespace kernels {
namespace {

constexpr int64_t kPanel = 64;

int64_t Padded(int64_t columns) {
  return (columns + 15) / 16 * 16;
}

// A product of 0.3 MFLOP takes about the two microseconds at which a second thread begins to pay;
// in units of kWorthSharing.
double ProductCost(int64_t rows, int64_t in, int64_t out) {
  return static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out) *
         (kWorthSharing / 150e3);
}

void RunDense(const Context& context, const DenseWork& work) {
  const KernelTable& table = TableOf(context);
  if (WorthSharing(context, ProductCost(work.rows, work.in, work.out))) {
    auto run = [&](int64_t begin, int64_t end) { table.dense(work, true, begin, end); };
    context.pool->ParallelFor(table.dense_tiles(work, true), 1, run);
  } else {
    table.dense(work, false, 0, INT64_MAX);
  }
}

// function(begin, width) for every panel of a matrix of `columns`.
template <class F>
void ForPanels(int64_t columns, F&& function) {
  for (int64_t begin = 0; begin < columns; begin += kPanel) {
    function(begin, std::min(kPanel, Padded(columns) - begin));
  }
}

}  // namespace

void Dense(const Context& context, int64_t rows, int64_t in, int64_t out, const float* x,
           const float* w, const float* bias, Activation activation, float* y) {
  RunDense(context, {.rows = rows,
                     .in = in,
                     .out = out,
                     .x = x,
                     .w = w,
                     .addend = bias,
                     .addend_stride = 0,
                     .activation = activation,
                     .h = nullptr,
                     .y = y});
}

void DenseInputGradient(const Context& context, int64_t rows, int64_t in, int64_t out,
                        const float* d_z, const float* wt, Activation activation, const float* h,
                        bool accumulate, float* d_x) {
  RunDense(context, {.rows = rows,
                     .in = out,
                     .out = in,
                     .x = d_z,
                     .w = wt,
                     .addend = accumulate ? d_x : nullptr,
                     .addend_stride = in,
                     .activation = h != nullptr ? activation : Activation::kNone,
                     .h = h,
                     .y = d_x});
}

void DenseWeightGradient(const Context& context, int64_t rows, int64_t in, int64_t out,
                         const float* x, const float* d_z, bool accumulate, float* d_w,
                         float* d_bias) {
  const KernelTable& table = TableOf(context);
  const WeightGradientWork work{
      .rows = rows, .in = in, .out = out, .x = x, .d_z = d_z, .accumulate = accumulate, .d_w = d_w};
  if (WorthSharing(context, ProductCost(rows, in, out))) {
    auto run = [&](int64_t begin, int64_t end) { table.weight_gradient(work, begin, end); };
    context.pool->ParallelFor(table.weight_gradient_tiles(work), 1, run);
  } else {
    table.weight_gradient(work, 0, INT64_MAX);
  }
  if (d_bias != nullptr) SumRows(context, rows, out, d_z, accumulate, d_bias);
}

void TransposePanels(const Context& context, int64_t in, int64_t out, const float* w, float* wt) {
  const KernelTable& table = TableOf(context);
  const int64_t panels = (in + kPanel - 1) / kPanel;  // of wt
  Split(context, panels, 1, kStreamCost * kPanel * static_cast<double>(out),
        [&](int64_t begin, int64_t end) {
          for (int64_t panel = begin; panel < end; ++panel) {
            const int64_t k = panel * kPanel;
            const int64_t width = std::min(kPanel, Padded(in) - k);
            const int64_t filled = std::min(kPanel, in - k);
            float* to = wt + out * k;
            ForPanels(out, [&](int64_t n, int64_t from_width) {
              table.transpose(filled, std::min(kPanel, out - n), w + in * n + k * from_width,
                              from_width, to + n * width, width);
            });
            if (filled == width) continue;
            for (int64_t n = 0; n < out; ++n) {
              std::fill(to + n * width + filled, to + (n + 1) * width, 0.0f);
            }
          }
        });
}

void PackPanels(int64_t in, int64_t out, const float* row_major, float* panels) {
  ForPanels(out, [&](int64_t n, int64_t width) {
    const int64_t filled = std::min(kPanel, out - n);
    for (int64_t k = 0; k < in; ++k) {
      float* to = panels + in * n + k * width;
      std::memcpy(to, row_major + k * out + n, filled * sizeof(float));
      std::fill(to + filled, to + width, 0.0f);
    }
  });
}

void UnpackPanels(int64_t in, int64_t out, const float* panels, float* row_major) {
  ForPanels(out, [&](int64_t n, int64_t width) {
    const int64_t filled = std::min(kPanel, out - n);
    for (int64_t k = 0; k < in; ++k) {
      std::memcpy(row_major + k * out + n, panels + in * n + k * width, filled * sizeof(float));
    }
  });
}

}  // namespace kernels
}  // namespace weft
