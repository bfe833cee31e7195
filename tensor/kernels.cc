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

void RunDense(const Context& context, const DenseWork& work) {
  ShareDense(context, TableOf(context), work);
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

void DenseAdd(const Context& context, int64_t rows, int64_t in, int64_t out, const float* x,
              const float* w, const float* addend, int64_t addend_stride, float* y,
              int64_t y_stride) {
  RunDense(context, {.rows = rows,
                     .in = in,
                     .out = out,
                     .x = x,
                     .w = w,
                     .addend = addend,
                     .addend_stride = addend_stride,
                     .activation = Activation::kNone,
                     .h = nullptr,
                     .y = y,
                     .y_stride = y_stride});
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
  const WeightGradientWork work{
      .rows = rows, .in = in, .out = out, .x = x, .d_z = d_z, .accumulate = accumulate, .d_w = d_w};
  ShareWeightGradient(context, TableOf(context), work);
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
