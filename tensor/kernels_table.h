// The kernels of one instruction set as plain functions on one thread. kernels*.cc check, split the
// work over threads and call these; kernels_portable.cc, kernels_avx2.cc and kernels_avx512.cc make
// one table each from the same templates (kernels_tiles.h, kernels_loops.h and what they include).
// Ranges and shapes as in kernels.h.
#pragma once

#include "tensor/kernels.h"
#include "tensor/kernels_loops.h"
#include "tensor/kernels_pointwise.h"
#include "tensor/kernels_quantised.h"

namespace weft::kernels {

// y[B,N] = x[B,K] w[K,N] + addend, then an activation, or its derivative at h.
struct DenseWork {
  int64_t rows, in, out;
  const float* x;
  const float* w;       // panels
  const float* addend;  // null, or row b at addend + b * addend_stride
  int64_t addend_stride;
  Activation activation;
  const float* h;  // null: apply the activation; else multiply by its derivative
  float* y;
  int64_t y_stride = 0;  // of y and h; 0: out
};

constexpr int64_t kFeatureParts = 16;
struct WeightGradientWork {
  int64_t rows, in, out;
  const float* x;
  const float* d_z;
  bool accumulate;
  float* d_w;                      // panels
  const float* x_tiles = nullptr;  // x as pack_features leaves it, or null
};

// The second operand of a binary gradient, to be summed over what was broadcast.
struct BinaryWork {
  Binary op;
  Broadcasting broadcast;
  int64_t rows, columns;
  const float* a;
  const float* b;
  const float* d_y;
};

struct KernelTable {
  // Output tiles are numbered; a range of them is one thread's share.
  int64_t (*dense_tiles)(const DenseWork& work, TileUse use);
  void (*dense)(const DenseWork& work, TileUse use, int64_t begin, int64_t end);
  int64_t (*weight_gradient_tiles)(const WeightGradientWork& work);
  void (*weight_gradient)(const WeightGradientWork& work, int64_t begin, int64_t end);
  // How many rows are summed before the sum is added to d_w; and for work of as many, features in
  // the order in which tiles read them: parts [begin, end) of kFeatureParts.
  int64_t gradient_rows;
  void (*pack_features)(const WeightGradientWork& work, int64_t begin, int64_t end, float* x_tiles);
  // y[c, r] = x[r, c] of matrices with the given row strides.
  void (*transpose)(int64_t rows, int64_t columns, const float* x, int64_t x_stride, float* y,
                    int64_t y_stride);

  void (*activation_gradient)(Activation activation, int64_t count, const float* h,
                              const float* d_h, float* d_z);
  void (*unary)(Unary op, int64_t count, const float* x, float* y);
  void (*unary_gradient)(Unary op, int64_t count, const float* x, const float* y, const float* d_y,
                         bool accumulate, float* d_x);
  void (*binary)(Binary op, Broadcasting broadcast, int64_t rows, int64_t columns, const float* a,
                 const float* b, float* y);
  // The gradient of the first operand; that of the second where nothing was broadcast.
  void (*binary_gradient_first)(const BinaryWork& work, bool accumulate, float* d_a);
  void (*binary_gradient_second)(const BinaryWork& work, bool accumulate, float* d_b);
  // That of a broadcast second operand: the tree sum of `rows` x `columns` as one vector, row sums,
  // column sums.
  float (*binary_gradient_sum)(const BinaryWork& work);
  void (*binary_gradient_sum_last)(const BinaryWork& work, bool accumulate, float* d_b);
  void (*binary_gradient_sum_rows)(const BinaryWork& work, int64_t begin, int64_t end,
                                   bool accumulate, float* d_b);
  void (*affine)(int64_t count, float scale, float shift, const float* x, float* y);
  void (*clamp)(int64_t count, float low, float high, const float* x, float* y);
  void (*clamp_gradient)(int64_t count, float low, float high, const float* x, const float* d_y,
                         bool accumulate, float* d_x);

  float (*sum)(int64_t count, const float* x);
  double (*sum_squares)(int64_t count, const float* x);
  void (*sum_last)(int64_t rows, int64_t columns, const float* x, float* y);
  // Columns [begin, end) of the `columns` that x has.
  void (*sum_rows)(int64_t rows, int64_t columns, int64_t begin, int64_t end, const float* x,
                   bool accumulate, float* y);
  void (*sum_rows_bf16)(int64_t rows, int64_t columns, int64_t begin, int64_t end,
                        const uint16_t* x, bool accumulate, float* y);
  void (*max_last)(int64_t rows, int64_t columns, const float* x, float* y, int64_t* argmax);
  int64_t (*first_non_finite)(int64_t count, const float* x);

  void (*softmax)(int64_t rows, int64_t columns, const float* x, float* y);
  void (*softmax_gradient)(int64_t rows, int64_t columns, const float* y, const float* d_y,
                           bool accumulate, float* d_x);
  void (*log_softmax)(int64_t rows, int64_t columns, const float* x, float* y);
  void (*log_softmax_gradient)(int64_t rows, int64_t columns, const float* y, const float* d_y,
                               bool accumulate, float* d_x);
  void (*layer_norm)(int64_t rows, int64_t columns, const float* x, const float* gamma,
                     const float* beta, float epsilon, void* y, bool bf16, float* mean,
                     float* rstd);
  void (*layer_norm_gradient)(int64_t rows, int64_t columns, const float* x, const float* gamma,
                              const float* mean, const float* rstd, const float* d_y,
                              bool accumulate, float* d_x);
  void (*layer_norm_scale_gradient)(int64_t rows, int64_t columns, int64_t begin, int64_t end,
                                    const float* x, const float* mean, const float* rstd,
                                    const float* d_y, float* d_gamma);

  void (*lstm)(int64_t rows, int64_t hidden, const float* gates, const float* c, float* new_c,
               float* new_h, float* activated);
  void (*lstm_gradient)(int64_t rows, int64_t hidden, const float* activated, const float* c,
                        const float* d_new_c, const float* d_new_h, float* d_gates, float* d_c);
  void (*gru)(int64_t rows, int64_t hidden, const float* x_gates, const float* h_gates,
              const float* h, float* new_h, float* activated);
  void (*gru_gradient)(int64_t rows, int64_t hidden, const float* activated, const float* h,
                       const float* d_new_h, float* d_x_gates, float* d_h_gates, float* d_h);

  void (*adam)(int64_t count, const AdamFactors& factors, const float* gradient, float* parameter,
               float* first_moment, float* second_moment);
  void (*rms_prop)(int64_t count, const RmsPropFactors& factors, const float* gradient,
                   float* parameter, float* square_average, float* momentum_buffer);
  void (*sgd)(int64_t count, const SgdFactors& factors, const float* gradient, float* parameter,
              float* momentum_buffer);
  void (*lerp)(int64_t count, float tau, const float* source, float* target);

  void (*round)(int64_t count, const float* x, uint16_t* y);
  void (*widen)(int64_t count, const uint16_t* x, float* y);
  void (*interleave)(int64_t count, const float* even, const float* odd, uint32_t* pairs);
  void (*interleave_halves)(int64_t count, const uint16_t* even, const uint16_t* odd,
                            uint32_t* pairs);

  // Transformers (kernels_transformer.h); y and d_x are f32 or, with bf16, bf16.
  void (*rms_norm)(int64_t rows, int64_t columns, int64_t stride, const float* x, const float* w,
                   float offset, float epsilon, void* y, bool bf16, float* rstd);
  void (*rms_norm_gradient)(int64_t rows, int64_t columns, const float* x, const float* w,
                            float offset, const float* rstd, const float* d_y, bool accumulate,
                            float* d_x);
  void (*rms_norm_scale_gradient)(int64_t rows, int64_t columns, int64_t begin, int64_t end,
                                  const float* x, const float* rstd, const float* d_y, float* d_w);
  void (*rotate)(int64_t tokens, int64_t heads, int64_t head_dimension, int64_t pairs,
                 int64_t stride, const float* table, const int32_t* positions, bool inverse,
                 float* x);
  void (*gate)(int64_t rows, int64_t columns, Unary activation, bool gated, const float* x, void* y,
               bool bf16);
  void (*gate_gradient)(int64_t rows, int64_t columns, Unary activation, bool gated, const float* x,
                        const float* d_y, void* d_x, bool bf16);
  void (*logit_statistics)(int64_t rows, int64_t columns, float scale, float cap, float* x,
                           float* log_sum, float* entropy);
  void (*logit_gradient)(int64_t rows, int64_t columns, float scale, float cap, const float* x,
                         const float* log_sum, const float* entropy, const int32_t* target,
                         const float* d_log_probability, const float* d_entropy, void* d_x,
                         bool bf16);
  // Attention (kernels_attention.h).
  void (*attend)(int64_t rows, int64_t tiles, float scale, float cap, const int32_t* first,
                 const int32_t* last, float* s, uint16_t* p, float* largest, float* sum);
  void (*attend_gradient)(int64_t rows, float scale, float cap, const int32_t* first,
                          const int32_t* last, const float* log_sum, const float* delta,
                          const float* s, const float* d_p, float* p, float* d_s);

  // The peak: independent multiply-adds in registers. Returns how many operations it made.
  double (*multiply_add)(int64_t steps, float* result);
};

// A panel of quantised weights (kernels_quantised.h).
struct QuantisedWork {
  CodeForm form;
  int64_t rows, in;          // rows: up to 4
  int64_t outputs, columns;  // padded, 16 or 32, and those that exist
  const uint32_t* x;         // pairs, rows in / 2 apart
  const std::byte* w;
  const float* addend;
  int64_t addend_stride;
  float* y;
  int64_t y_stride;
};

// function.operator()<form>(), of the four forms that there are.
template <class F>
void WithForm(CodeForm form, F&& function) {
  if (form.bits == 4) {
    if (form.runs) return function.template operator()<CodeForm{4, true}>();
    return function.template operator()<CodeForm{4, false}>();
  }
  if (form.runs) return function.template operator()<CodeForm{8, true}>();
  return function.template operator()<CodeForm{8, false}>();
}

// Rows rounded to 8 bits, by blocks of 32 along k (kernels_eight_bits.h), and a panel of quantised
// weights.
struct EightBitRows {
  CodeForm form;  // of the weights: the order of codes and the number of sums depend on it
  int64_t rows, in;
  int8_t* codes;  // [rows, in]; with 8-bit weights 128 more, without sign
  float* scales;  // [rows, in / 32]
  float* sums;    // [rows, in / 32 or, with runs, in / 16]: scale * sum of codes
};
struct EightBitWork {
  EightBitRows x;
  int64_t outputs, columns;  // padded, 16 or 32, and those that exist
  const std::byte* w;
  const float* addend;
  int64_t addend_stride;
  float* y;
  int64_t y_stride;
};
struct EightBitTable {
  // Rows [begin, end) of x, of which row 0 lies at x.
  void (*round)(const EightBitRows& to, const uint16_t* x, int64_t begin, int64_t end);
  void (*dense)(const EightBitWork& work);
};
extern const EightBitTable kVnniEightBits;

// Products of bf16 by pairs (kernels_pairs.h); `in` and the strides of the work count pairs, which
// are passed as floats of the same bits.
struct PairTable {
  // Both may be null: plain code does it then.
  void (*dense_quantised)(const QuantisedWork& work);
  // Into rows of pairs that lie `stride` apart.
  void (*unpack_quantised)(const QuantisedWork& work, int64_t stride, uint32_t* pairs);

  int64_t (*dense_tiles)(const DenseWork& work, TileUse use);
  void (*dense)(const DenseWork& work, TileUse use, int64_t begin, int64_t end);
  int64_t (*weight_gradient_tiles)(const WeightGradientWork& work);
  void (*weight_gradient)(const WeightGradientWork& work, int64_t begin, int64_t end);
  int64_t gradient_rows;  // 0: all; then features are not packed
  void (*pack_features)(const WeightGradientWork& work, int64_t begin, int64_t end, float* x_tiles);
};

// Sums one pair after the other (SumOrder::kPairs).
extern const PairTable kPortablePairs;
extern const PairTable kAvx2Pairs;
extern const PairTable kAvx512Pairs;
extern const PairTable kAvx512Bf16Pairs;
// And by blocks.
extern const PairTable kPortableBlocks;
extern const PairTable kAvx2Blocks;
extern const PairTable kAmxBlocks;

extern const KernelTable kPortableKernels;
extern const KernelTable kAvx2Kernels;
extern const KernelTable kAvx512Kernels;

}  // namespace weft::kernels
