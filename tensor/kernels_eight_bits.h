// Products of quantised weights (kernels_quantised.h) with rows that are rounded to 8 bits: sums of
// integers where DenseQuantised multiplies in bf16, so several times faster where the processor and
// not the memory limits, and less exact. B rows, K inputs (a multiple of 32), N outputs.
//
// Of 32 elements of a row, x = s * c with s = max |x| / 127 and c the integer next to x / s, ties
// to even. With weights w = d * q + m of a run (all 32, or 16 where weights have factors for every
// 16), even and odd k of a block apart, in f32 and by fused multiply-adds in the order of k,
//   y = sum over runs of (d s) * (sum of q c, even k) + the same of odd k + sum of m * (s * sum of
//   c),
// the integer sums exact. The bits are the same for every instruction set and number of rows. A row
// with an element that is not finite gives NaN; blocks below 2^-100 count as zero.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/context.h"
#include "tensor/kernels_quantised.h"
#include "tensor/tensor.h"

namespace weft::kernels {

// y[B,N] = x[B,K] w[K,N] + addend, as DenseQuantised.
void DenseEightBits(const Context& context, CodeForm form, int64_t rows, int64_t in, int64_t out,
                    const BFloat16* x, const std::byte* w, const float* addend,
                    int64_t addend_stride, float* y);

}  // namespace weft::kernels
