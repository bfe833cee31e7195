// Plain loops in the order of operations that kernels.h promises: every kernel there with the same
// name and arguments less the context, on one thread, one element at a time. Tests compare the fast
// kernels with these bit for bit.
#pragma once

#include "tensor/kernels.h"

namespace weft::reference {

using kernels::AdamStep;
using kernels::RmsPropStep;
using kernels::SgdStep;

void Dense(int64_t rows, int64_t in, int64_t out, const float* x, const float* w, const float* bias,
           Activation activation, float* y);
void DenseInputGradient(int64_t rows, int64_t in, int64_t out, const float* d_z, const float* wt,
                        Activation activation, const float* h, bool accumulate, float* d_x);
void DenseWeightGradient(int64_t rows, int64_t in, int64_t out, const float* x, const float* d_z,
                         bool accumulate, float* d_w, float* d_bias);
void TransposePanels(int64_t in, int64_t out, const float* w, float* wt);
void PackPanels(int64_t in, int64_t out, const float* row_major, float* panels);
void UnpackPanels(int64_t in, int64_t out, const float* panels, float* row_major);
void ActivationGradient(int64_t count, Activation activation, const float* h, const float* d_h,
                        float* d_z);
void UnaryForward(Unary op, int64_t count, const float* x, float* y);
void UnaryGradient(Unary op, int64_t count, const float* x, const float* y, const float* d_y,
                   bool accumulate, float* d_x);
void BinaryForward(Binary op, Broadcasting broadcast, int64_t rows, int64_t columns, const float* a,
                   const float* b, float* y);
void BinaryGradient(Binary op, Broadcasting broadcast, int64_t rows, int64_t columns,
                    const float* a, const float* b, const float* d_y, bool accumulate_a, float* d_a,
                    bool accumulate_b, float* d_b);
void Affine(int64_t count, float scale, float shift, const float* x, float* y);
void Clamp(int64_t count, float low, float high, const float* x, float* y);
void ClampGradient(int64_t count, float low, float high, const float* x, const float* d_y,
                   bool accumulate, float* d_x);
void Select(int64_t count, const uint8_t* mask, const float* a, const float* b, float* y);
float SumAll(int64_t count, const float* x);
double SumSquares(int64_t count, const float* x);
void SumLast(int64_t rows, int64_t columns, const float* x, float* y);
void SumRows(int64_t rows, int64_t columns, const float* x, bool accumulate, float* y);
void MaxLast(int64_t rows, int64_t columns, const float* x, float* y, int64_t* argmax);
void Softmax(int64_t rows, int64_t columns, const float* x, float* y);
void SoftmaxGradient(int64_t rows, int64_t columns, const float* y, const float* d_y,
                     bool accumulate, float* d_x);
void LogSoftmax(int64_t rows, int64_t columns, const float* x, float* y);
void LogSoftmaxGradient(int64_t rows, int64_t columns, const float* y, const float* d_y,
                        bool accumulate, float* d_x);
void LayerNorm(int64_t rows, int64_t columns, const float* x, const float* gamma, const float* beta,
               float epsilon, float* y, float* mean, float* rstd);
void LayerNormGradient(int64_t rows, int64_t columns, const float* x, const float* gamma,
                       const float* mean, const float* rstd, const float* d_y, bool accumulate,
                       float* d_x, float* d_gamma, float* d_beta);
void LstmCell(int64_t rows, int64_t hidden, const float* gates, const float* c, float* new_c,
              float* new_h, float* activated);
void LstmCellGradient(int64_t rows, int64_t hidden, const float* activated, const float* c,
                      const float* d_new_c, const float* d_new_h, float* d_gates, float* d_c);
void GruCell(int64_t rows, int64_t hidden, const float* x_gates, const float* h_gates,
             const float* h, float* new_h, float* activated);
void GruCellGradient(int64_t rows, int64_t hidden, const float* activated, const float* h,
                     const float* d_new_h, float* d_x_gates, float* d_h_gates, float* d_h);
void Im2Col(int64_t batch, int64_t channels, int64_t height, int64_t width, int64_t kernel,
            int64_t stride, int64_t pad, const float* x, float* patches);
void Col2Im(int64_t batch, int64_t channels, int64_t height, int64_t width, int64_t kernel,
            int64_t stride, int64_t pad, const float* d_patches, bool accumulate, float* d_x);
void SwapLastTwo(int64_t batch, int64_t a, int64_t b, const float* x, float* y);
void Adam(int64_t count, const AdamStep& step, const float* gradient, float* parameter,
          float* first_moment, float* second_moment);
void RmsProp(int64_t count, const RmsPropStep& step, const float* gradient, float* parameter,
             float* square_average, float* momentum_buffer);
void Sgd(int64_t count, const SgdStep& step, const float* gradient, float* parameter,
         float* momentum_buffer);
void Lerp(int64_t count, float tau, const float* source, float* target);
int64_t FirstNonFinite(int64_t count, const float* x);

}  // namespace weft::reference
