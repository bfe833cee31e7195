// Compute kernels on plain pointers: the only floor that knows how numbers are made. The law
// (docs/architecture.md): the order of every sum depends on shape alone. A dense output is one
// accumulator over k ascending with fma, bias added last; weight gradients are sums over blocks of
// 256 rows (rows ascending in one accumulator by fma), blocks added in order; sums of a vector go
// over fixed blocks in a fixed tree. So results do not depend on threads, batch size, row position
// or instruction set. Every kernel here has a slow twin in namespace reference (reference.h).
// Pointers need no alignment; aliasing is allowed only where said. B rows, K inputs, N outputs.
#pragma once

#include <cstdint>

#include "tensor/context.h"

namespace weft {

enum class Activation : uint8_t { kNone, kTanh, kRelu, kSigmoid };
const char* Name(Activation activation);

enum class Unary : uint8_t {
  kNegate,
  kExp,
  kLog,
  kSqrt,
  kSquare,
  kAbs,
  kTanh,
  kRelu,
  kSigmoid,
  kSoftplus,
  kElu,
  kGelu,     // the tanh form
  kGeluErf,  // x Phi(x)
  kSilu,
  kReciprocal,
  kSin,
  kCos,
};
enum class Binary : uint8_t { kAdd, kSubtract, kMultiply, kDivide, kMinimum, kMaximum };

// How the second operand of a binary kernel meets the first, an array of `rows` x `columns`.
enum class Broadcasting : uint8_t {
  kNone,    // same size
  kScalar,  // one element
  kRow,     // [columns], the same for every row
  kColumn,  // [rows], the same along a row
};

namespace kernels {

// Numbers in f32 or bf16; an output is rounded.
struct Output {
  void* data;
  bool bf16;

  void* At(int64_t element) const { return static_cast<char*>(data) + element * (bf16 ? 2 : 4); }
};
struct Input {
  const void* data;
  bool bf16;
};

// y[B,N] = activation(x[B,K] w[K,N] + bias[N]); w in panels (tensor.h, Layout); bias may be null.
void Dense(const Context& context, int64_t rows, int64_t in, int64_t out, const float* x,
           const float* w, const float* bias, Activation activation, float* y);

// y[B,N] = x[B,K] w[K,N] + addend: null, or row b at addend + b * addend_stride; it may be y. Rows
// of y are y_stride apart (0: N).
void DenseAdd(const Context& context, int64_t rows, int64_t in, int64_t out, const float* x,
              const float* w, const float* addend, int64_t addend_stride, float* y,
              int64_t y_stride = 0);

// d_x[B,K] = d_z[B,N] wt[N,K], wt the transposed weight in panels. When h is given, [B,K] is the
// output of the activation that made x, and the result is multiplied by its derivative: d_x becomes
// the d_z of the layer below. accumulate adds to d_x (then h must be null).
void DenseInputGradient(const Context& context, int64_t rows, int64_t in, int64_t out,
                        const float* d_z, const float* wt, Activation activation, const float* h,
                        bool accumulate, float* d_x);

// d_w[K,N] (panels, padding written as zero) = x^T d_z; d_bias[N] = column sums of d_z (may be
// null). accumulate goes on adding blocks to what is there, so micro-batches of a multiple of 256
// rows give the bits of one batch.
void DenseWeightGradient(const Context& context, int64_t rows, int64_t in, int64_t out,
                         const float* x, const float* d_z, bool accumulate, float* d_w,
                         float* d_bias);

// Panels of w^T [N,K] from panels of w [K,N].
void TransposePanels(const Context& context, int64_t in, int64_t out, const float* w, float* wt);
// Where element (k, n) of a matrix [K,N] in panels lies.
inline int64_t PanelIndex(int64_t in, int64_t out, int64_t k, int64_t n) {
  const int64_t begin = n / 64 * 64, rest = (out - begin + 15) / 16 * 16;
  return in * begin + k * (rest < 64 ? rest : 64) + (n - begin);
}
// Between row-major [K,N] and panels; packing writes the padding as zero.
void PackPanels(int64_t in, int64_t out, const float* row_major, float* panels);
void UnpackPanels(int64_t in, int64_t out, const float* panels, float* row_major);

// d_z = d_h times the derivative of the activation written in its output h: tanh d - d h^2 (as
// fma(-d*h, h, d)), relu h <= 0 ? 0 : d (so NaN stays visible), sigmoid d*h*(1-h). d_z may be d_h.
void ActivationGradient(const Context& context, int64_t count, Activation activation,
                        const float* h, const float* d_h, float* d_z);

// y = op(x); y may be x.
void UnaryForward(const Context& context, Unary op, int64_t count, const float* x, float* y);
// d_x (+)= d_y times op'(x), given x and y = op(x). Derivatives at kinks as torch: relu'(0) = 0,
// abs'(0) = 0.
void UnaryGradient(const Context& context, Unary op, int64_t count, const float* x, const float* y,
                   const float* d_y, bool accumulate, float* d_x);

// y = a op b; y may be a or b when sizes agree.
void BinaryForward(const Context& context, Binary op, Broadcasting broadcast, int64_t rows,
                   int64_t columns, const float* a, const float* b, float* y);
// Gradients of both operands, each may be null; d_b has the size of b (sums over what was
// broadcast, fixed order). minimum and maximum give the gradient to a where a wins or ties by half
// each (torch).
void BinaryGradient(const Context& context, Binary op, Broadcasting broadcast, int64_t rows,
                    int64_t columns, const float* a, const float* b, const float* d_y,
                    bool accumulate_a, float* d_a, bool accumulate_b, float* d_b);

// y = x * scale + shift in two roundings; y may be x.
void Affine(const Context& context, int64_t count, float scale, float shift, const float* x,
            float* y);
// y = min(max(x, low), high), NaN kept; gradient passes where low <= x <= high.
void Clamp(const Context& context, int64_t count, float low, float high, const float* x, float* y);
void ClampGradient(const Context& context, int64_t count, float low, float high, const float* x,
                   const float* d_y, bool accumulate, float* d_x);
// y = mask ? a : b, elementwise; mask of bytes.
void Select(const Context& context, int64_t count, const uint8_t* mask, const float* a,
            const float* b, float* y);

// Sums. Order: blocks of 1,024 elements; inside a block 16 accumulators by index mod 16, folded
// pairwise (i with i + 8, then + 4, + 2, + 1); blocks by a binary tree whose left part is the
// largest power of two below their number.
float SumAll(const Context& context, int64_t count, const float* x);
// In double, for the global norm.
double SumSquares(const Context& context, int64_t count, const float* x);
// y[B] = sum over the last dimension, same order inside a row.
void SumLast(const Context& context, int64_t rows, int64_t columns, const float* x, float* y);
// y[N] = column sums of x[B,N]: blocks of 256 rows as in DenseWeightGradient.
void SumRows(const Context& context, int64_t rows, int64_t columns, const float* x, bool accumulate,
             float* y);
// The largest of each row and its lowest index; a NaN is larger than every number. columns > 0;
// argmax may be null.
void MaxLast(const Context& context, int64_t rows, int64_t columns, const float* x, float* y,
             int64_t* argmax);

// Row-wise softmax family over the last dimension, two passes with the maximum subtracted.
void Softmax(const Context& context, int64_t rows, int64_t columns, const float* x, float* y);
void SoftmaxGradient(const Context& context, int64_t rows, int64_t columns, const float* y,
                     const float* d_y, bool accumulate, float* d_x);
void LogSoftmax(const Context& context, int64_t rows, int64_t columns, const float* x, float* y);
void LogSoftmaxGradient(const Context& context, int64_t rows, int64_t columns, const float* y,
                        const float* d_y, bool accumulate, float* d_x);

// y = (x - mean) / sqrt(var + epsilon) * gamma + beta per row; mean and rstd [B] are kept for the
// gradient.
void LayerNorm(const Context& context, int64_t rows, int64_t columns, const float* x,
               const float* gamma, const float* beta, float epsilon, Output y, float* mean,
               float* rstd);
// accumulate concerns d_x; d_gamma and d_beta are written. Each of the three may be null.
void LayerNormGradient(const Context& context, int64_t rows, int64_t columns, const float* x,
                       const float* gamma, const float* mean, const float* rstd, const float* d_y,
                       bool accumulate, float* d_x, float* d_gamma, float* d_beta);

// Pointwise parts of recurrent cells; the matrix products are Dense. H hidden units.
// LSTM, gates [B,4H] in order i f g o (before activation), c [B,H]: new_c, new_h [B,H]; activated
// [B,5H] keeps i f g o and tanh(new_c) for the gradient.
void LstmCell(const Context& context, int64_t rows, int64_t hidden, const float* gates,
              const float* c, float* new_c, float* new_h, float* activated);
void LstmCellGradient(const Context& context, int64_t rows, int64_t hidden, const float* activated,
                      const float* c, const float* d_new_c, const float* d_new_h, float* d_gates,
                      float* d_c);
// GRU, x_gates and h_gates [B,3H] in order r z n (h_gates holds W_h h + b_h), h [B,H]: new_h =
// (1-z) n + z h with n = tanh(x_n + r h_n) (torch's form); activated [B,4H] keeps r z n and h_n.
void GruCell(const Context& context, int64_t rows, int64_t hidden, const float* x_gates,
             const float* h_gates, const float* h, float* new_h, float* activated);
void GruCellGradient(const Context& context, int64_t rows, int64_t hidden, const float* activated,
                     const float* h, const float* d_new_h, float* d_x_gates, float* d_h_gates,
                     float* d_h);

// Convolution as patches and Dense. x [B,C,H,W]; patches [B*OH*OW, C*k*k] with OH = (H + 2 pad -
// k)/stride + 1.
void Im2Col(const Context& context, int64_t batch, int64_t channels, int64_t height, int64_t width,
            int64_t kernel, int64_t stride, int64_t pad, const float* x, float* patches);
// The transpose of Im2Col: sums overlapping patches in ascending (kernel row, kernel column) order.
void Col2Im(const Context& context, int64_t batch, int64_t channels, int64_t height, int64_t width,
            int64_t kernel, int64_t stride, int64_t pad, const float* d_patches, bool accumulate,
            float* d_x);
// [B, P, C] <-> [B, C, P] (P = pixels).
void SwapLastTwo(const Context& context, int64_t batch, int64_t a, int64_t b, const float* x,
                 float* y);

// Optimisers, elementwise and in place, in torch's order of operations; denormals count as zero.
// gradient_scale is the factor of the global-norm clip; the gradient is multiplied by it first.
struct AdamStep {
  double learning_rate, beta1, beta2, epsilon, weight_decay;  // decoupled decay (AdamW) when > 0
  // beta1 and beta2 to the number of steps, this one counted: by the caller, once for all tensors.
  double beta1_power, beta2_power;
  double gradient_scale = 1;
};
// By squaring: the bits of pow differ between C libraries. exponent >= 0.
double Power(double base, int64_t exponent);
void Adam(const Context& context, int64_t count, const AdamStep& step, const float* gradient,
          float* parameter, float* first_moment, float* second_moment);
struct RmsPropStep {
  double learning_rate, alpha, epsilon, momentum, weight_decay, gradient_scale = 1;
  bool epsilon_inside;  // TensorFlow: sqrt(v + epsilon); torch: sqrt(v) + epsilon
};
// momentum_buffer may be null when momentum is 0, here and below.
void RmsProp(const Context& context, int64_t count, const RmsPropStep& step, const float* gradient,
             float* parameter, float* square_average, float* momentum_buffer);
struct SgdStep {
  double learning_rate, momentum, dampening, weight_decay, gradient_scale = 1;
  bool nesterov, first;  // first: the momentum buffer is set to the gradient
};
void Sgd(const Context& context, int64_t count, const SgdStep& step, const float* gradient,
         float* parameter, float* momentum_buffer);
// target += tau (source - target).
void Lerp(const Context& context, int64_t count, float tau, const float* source, float* target);

// Index of the first element that is NaN or infinite, -1 when all are finite.
int64_t FirstNonFinite(const Context& context, int64_t count, const float* x);

}  // namespace kernels

}  // namespace weft
