#include "tensor/kernels.h"

#include "tensor/reference.h"

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

void Dense(const Context&, int64_t rows, int64_t in, int64_t out, const float* x, const float* w,
           const float* bias, Activation activation, float* y) {
  reference::Dense(rows, in, out, x, w, bias, activation, y);
}
void DenseInputGradient(const Context&, int64_t rows, int64_t in, int64_t out, const float* d_z,
                        const float* wt, Activation activation, const float* h, bool accumulate,
                        float* d_x) {
  reference::DenseInputGradient(rows, in, out, d_z, wt, activation, h, accumulate, d_x);
}
void DenseWeightGradient(const Context&, int64_t rows, int64_t in, int64_t out, const float* x,
                         const float* d_z, bool accumulate, float* d_w, float* d_bias) {
  reference::DenseWeightGradient(rows, in, out, x, d_z, accumulate, d_w, d_bias);
}
void TransposePanels(const Context&, int64_t in, int64_t out, const float* w, float* wt) {
  reference::TransposePanels(in, out, w, wt);
}
void PackPanels(int64_t in, int64_t out, const float* row_major, float* panels) {
  reference::PackPanels(in, out, row_major, panels);
}
void UnpackPanels(int64_t in, int64_t out, const float* panels, float* row_major) {
  reference::UnpackPanels(in, out, panels, row_major);
}
void ActivationGradient(const Context&, int64_t count, Activation activation, const float* h,
                        const float* d_h, float* d_z) {
  reference::ActivationGradient(count, activation, h, d_h, d_z);
}
void UnaryForward(const Context&, Unary op, int64_t count, const float* x, float* y) {
  reference::UnaryForward(op, count, x, y);
}
void UnaryGradient(const Context&, Unary op, int64_t count, const float* x, const float* y,
                   const float* d_y, bool accumulate, float* d_x) {
  reference::UnaryGradient(op, count, x, y, d_y, accumulate, d_x);
}
void BinaryForward(const Context&, Binary op, Broadcast broadcast, int64_t rows, int64_t columns,
                   const float* a, const float* b, float* y) {
  reference::BinaryForward(op, broadcast, rows, columns, a, b, y);
}
void BinaryGradient(const Context&, Binary op, Broadcast broadcast, int64_t rows, int64_t columns,
                    const float* a, const float* b, const float* d_y, bool accumulate_a, float* d_a,
                    bool accumulate_b, float* d_b) {
  reference::BinaryGradient(op, broadcast, rows, columns, a, b, d_y, accumulate_a, d_a,
                            accumulate_b, d_b);
}
void Affine(const Context&, int64_t count, float scale, float shift, const float* x, float* y) {
  reference::Affine(count, scale, shift, x, y);
}
void Clamp(const Context&, int64_t count, float low, float high, const float* x, float* y) {
  reference::Clamp(count, low, high, x, y);
}
void ClampGradient(const Context&, int64_t count, float low, float high, const float* x,
                   const float* d_y, bool accumulate, float* d_x) {
  reference::ClampGradient(count, low, high, x, d_y, accumulate, d_x);
}
void Select(const Context&, int64_t count, const uint8_t* mask, const float* a, const float* b,
            float* y) {
  reference::Select(count, mask, a, b, y);
}
float SumAll(const Context&, int64_t count, const float* x) {
  return reference::SumAll(count, x);
}
double SumSquares(const Context&, int64_t count, const float* x) {
  return reference::SumSquares(count, x);
}
void SumLast(const Context&, int64_t rows, int64_t columns, const float* x, float* y) {
  reference::SumLast(rows, columns, x, y);
}
void SumRows(const Context&, int64_t rows, int64_t columns, const float* x, bool accumulate,
             float* y) {
  reference::SumRows(rows, columns, x, accumulate, y);
}
void MaxLast(const Context&, int64_t rows, int64_t columns, const float* x, float* y,
             int64_t* argmax) {
  reference::MaxLast(rows, columns, x, y, argmax);
}
void Softmax(const Context&, int64_t rows, int64_t columns, const float* x, float* y) {
  reference::Softmax(rows, columns, x, y);
}
void SoftmaxGradient(const Context&, int64_t rows, int64_t columns, const float* y,
                     const float* d_y, bool accumulate, float* d_x) {
  reference::SoftmaxGradient(rows, columns, y, d_y, accumulate, d_x);
}
void LogSoftmax(const Context&, int64_t rows, int64_t columns, const float* x, float* y) {
  reference::LogSoftmax(rows, columns, x, y);
}
void LogSoftmaxGradient(const Context&, int64_t rows, int64_t columns, const float* y,
                        const float* d_y, bool accumulate, float* d_x) {
  reference::LogSoftmaxGradient(rows, columns, y, d_y, accumulate, d_x);
}
void LayerNorm(const Context&, int64_t rows, int64_t columns, const float* x, const float* gamma,
               const float* beta, float epsilon, float* y, float* mean, float* rstd) {
  reference::LayerNorm(rows, columns, x, gamma, beta, epsilon, y, mean, rstd);
}
void LayerNormGradient(const Context&, int64_t rows, int64_t columns, const float* x,
                       const float* gamma, const float* mean, const float* rstd, const float* d_y,
                       bool accumulate, float* d_x, float* d_gamma, float* d_beta) {
  reference::LayerNormGradient(rows, columns, x, gamma, mean, rstd, d_y, accumulate, d_x, d_gamma,
                               d_beta);
}
void LstmCell(const Context&, int64_t rows, int64_t hidden, const float* gates, const float* c,
              float* new_c, float* new_h, float* activated) {
  reference::LstmCell(rows, hidden, gates, c, new_c, new_h, activated);
}
void LstmCellGradient(const Context&, int64_t rows, int64_t hidden, const float* activated,
                      const float* c, const float* d_new_c, const float* d_new_h, float* d_gates,
                      float* d_c) {
  reference::LstmCellGradient(rows, hidden, activated, c, d_new_c, d_new_h, d_gates, d_c);
}
void GruCell(const Context&, int64_t rows, int64_t hidden, const float* x_gates,
             const float* h_gates, const float* h, float* new_h, float* activated) {
  reference::GruCell(rows, hidden, x_gates, h_gates, h, new_h, activated);
}
void GruCellGradient(const Context&, int64_t rows, int64_t hidden, const float* activated,
                     const float* h, const float* d_new_h, float* d_x_gates, float* d_h_gates,
                     float* d_h) {
  reference::GruCellGradient(rows, hidden, activated, h, d_new_h, d_x_gates, d_h_gates, d_h);
}
void Im2Col(const Context&, int64_t batch, int64_t channels, int64_t height, int64_t width,
            int64_t kernel, int64_t stride, int64_t pad, const float* x, float* patches) {
  reference::Im2Col(batch, channels, height, width, kernel, stride, pad, x, patches);
}
void Col2Im(const Context&, int64_t batch, int64_t channels, int64_t height, int64_t width,
            int64_t kernel, int64_t stride, int64_t pad, const float* d_patches, bool accumulate,
            float* d_x) {
  reference::Col2Im(batch, channels, height, width, kernel, stride, pad, d_patches, accumulate,
                    d_x);
}
void SwapLastTwo(const Context&, int64_t batch, int64_t a, int64_t b, const float* x, float* y) {
  reference::SwapLastTwo(batch, a, b, x, y);
}
void Adam(const Context&, int64_t count, const AdamStep& step, const float* gradient,
          float* parameter, float* first_moment, float* second_moment) {
  reference::Adam(count, step, gradient, parameter, first_moment, second_moment);
}
void RmsProp(const Context&, int64_t count, const RmsPropStep& step, const float* gradient,
             float* parameter, float* square_average, float* momentum_buffer) {
  reference::RmsProp(count, step, gradient, parameter, square_average, momentum_buffer);
}
void Sgd(const Context&, int64_t count, const SgdStep& step, const float* gradient,
         float* parameter, float* momentum_buffer) {
  reference::Sgd(count, step, gradient, parameter, momentum_buffer);
}
void Lerp(const Context&, int64_t count, float tau, const float* source, float* target) {
  reference::Lerp(count, tau, source, target);
}
int64_t FirstNonFinite(const Context&, int64_t count, const float* x) {
  return reference::FirstNonFinite(count, x);
}

}  // namespace kernels
}  // namespace weft
