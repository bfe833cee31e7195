// Products in bf16 whose weights stay quantised in memory: blocks of 32 along k share a scale and
// an offset, w = scale * code + offset, rounded to bf16 as it is read. The results have the bits of
// DenseBf16 on the weights so rounded; what is saved is memory and the time to read it. B rows, K
// inputs (a multiple of 32), N outputs.
#pragma once

#include <cstdint>

#include "tensor/context.h"
#include "tensor/tensor.h"

namespace weft::kernels {

// Bits of a code: 4 (0..15) or 8 (-128..127).
enum class CodeWidth : uint8_t { k4 = 4, k8 = 8 };

constexpr int64_t kQuantisedBlock = 32;

// Panels of 32 outputs (the last one 16 or 32 wide), so that one thread reads one stream; in each,
// for every block: 32 scales and 32 offsets in half precision, then the codes of 16 outputs at a
// time, in
// vectors of 16 words: word 2 o + b of a vector has the codes of output o (of 8) at k = b, b + 2,
// .. lowest bits first.
int64_t QuantisedBytes(CodeWidth width, int64_t in, int64_t out);

// Writes one output's codes [K], scales and offsets [K/32] (halves, as stored) into zeroed memory.
void SetQuantisedColumn(CodeWidth width, int64_t in, int64_t out, int64_t column,
                        const int8_t* codes, const uint16_t* scales, const uint16_t* offsets,
                        std::byte* w);
// One output's weights [K], rounded to bf16.
void GetQuantisedColumn(CodeWidth width, int64_t in, int64_t out, int64_t column,
                        const std::byte* w, BFloat16* x);

// y[B,N] = x[B,K] w[K,N] + addend, as DenseBf16.
void DenseQuantised(const Context& context, CodeWidth width, int64_t rows, int64_t in, int64_t out,
                    const BFloat16* x, const std::byte* w, const float* addend,
                    int64_t addend_stride, float* y);

}  // namespace weft::kernels
