// Products in bf16 with f32 sums. The law: pairs of neighbours in k ascending, in a pair the odd
// element first, each a fused multiply-add in f32 that flushes denormals, one accumulator per
// output, the bias last; weight gradients pair rows instead and are sums over blocks of 256 rows.
// That is the order of the instruction made for it (vdpbf16ps), emulated bit for bit where a CPU
// lacks it. B rows, K inputs (even), N outputs.
#pragma once

#include <cstdint>

#include "tensor/context.h"
#include "tensor/tensor.h"

namespace weft::kernels {

// Weights [K, N] in pair panels: [N/64][K/2][64][2], the last panel as wide as N's remainder
// rounded up to 16, padding zero: as many elements as PanelElements(K, N).

// From f32 panels, each element rounded.
void PackPairs(const Context& context, int64_t in, int64_t out, const float* panels, BFloat16* w);
// Pair panels of w^T [N, K] from f32 panels of w [K, N]; N even.
void PackTransposedPairs(const Context& context, int64_t in, int64_t out, const float* panels,
                         BFloat16* wt);
void Round(const Context& context, int64_t count, const float* x, BFloat16* y);
void Widen(const Context& context, int64_t count, const BFloat16* x, float* y);
// [B, C] to [(B+1)/2][C][2]: rows 2i and 2i+1 side by side, a missing last row zero.
void InterleaveRows(const Context& context, int64_t rows, int64_t columns, const BFloat16* x,
                    BFloat16* pairs);

// y[B,N] = x[B,K] w[K,N] + addend; w in pair panels. addend is null, or row b at addend + b *
// addend_stride (0: a bias); it may be y. Rows of y are y_stride apart (0: N).
void DenseBf16(const Context& context, int64_t rows, int64_t in, int64_t out, const BFloat16* x,
               const BFloat16* w, const float* addend, int64_t addend_stride, float* y,
               int64_t y_stride = 0);
// d_w[K,N] (f32 panels) = x^T d_z, both with interleaved rows. accumulate as in
// DenseWeightGradient.
void DenseBf16WeightGradient(const Context& context, int64_t rows, int64_t in, int64_t out,
                             const BFloat16* x_pairs, const BFloat16* d_z_pairs, bool accumulate,
                             float* d_w);

// Whether this CPU multiplies bf16 pairs itself, in the order of the law (tried out once).
bool HasBf16Products();

}  // namespace weft::kernels
