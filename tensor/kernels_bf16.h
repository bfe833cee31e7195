// Products in bf16 with f32 sums. The law: fused multiply-adds in f32 that flush denormals, k
// ascending, the bias last; weight gradients are over rows instead of k, sums over blocks of 256.
// The order within a sum is that of the CPU's own instruction (SumOrder), emulated bit for bit on
// lower levels of the instruction set. B rows, K inputs (even), N outputs.
#pragma once

#include <cstdint>

#include "tensor/context.h"
#include "tensor/tensor.h"

namespace weft::kernels {

// Weights [K, N] in pair panels: [N/64][K/2][64][2], the last panel as wide as N's remainder
// rounded up to 16, padding zero: as many elements as PanelElements(K, N).

// From f32 panels, each element rounded.
void PackPairs(const Context& context, int64_t in, int64_t out, const float* panels, BFloat16* w);
// Pair panels of w^T [N, K] from those of w [K, N]; N even.
void TransposePairs(const Context& context, int64_t in, int64_t out, const BFloat16* w,
                    BFloat16* wt);
void Round(const Context& context, int64_t count, const float* x, BFloat16* y);
void Widen(const Context& context, int64_t count, const BFloat16* x, float* y);
// [B, C] to [(B+1)/2][C][2]: rows 2i and 2i+1 side by side, a missing last row zero.
void InterleaveRows(const Context& context, int64_t rows, int64_t columns, const BFloat16* x,
                    BFloat16* pairs);
// As kernels::SumRows.
void SumRows(const Context& context, int64_t rows, int64_t columns, const BFloat16* x,
             bool accumulate, float* y);

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

// How the CPU adds up: one pair of neighbours after the other, the odd element first (vdpbf16ps,
// and CPUs without any instruction for it); or, where it has tile registers (tdpbf16ps), blocks of
// 32: their even elements, their odd ones, and both onto the sum. Machines of different order give
// different last bits.
enum class SumOrder : uint8_t { kPairs, kBlocks };
SumOrder Bf16SumOrder();
// What multiplies bf16 on this machine, tried out once: "tdpbf16ps", "vdpbf16ps" or "emulated".
const char* Bf16Instruction();

}  // namespace weft::kernels
