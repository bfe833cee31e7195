// Products in bf16 whose weights stay quantised in memory: blocks of 32 along k share a scale and
// an offset, w = scale * code + offset, rounded to bf16 as it is read. Where weights have runs,
// each 16 of them have small factors of their own: w = (scale * factor) * code + offset *
// offset_factor, which is exact but for the sum. The results have the bits of DenseBf16 on the
// weights so rounded; what is saved is memory and the time to read it. B rows, K inputs (a multiple
// of 32), N outputs.
#pragma once

#include <cstdint>

#include "tensor/context.h"
#include "tensor/tensor.h"

namespace weft::kernels {

struct CodeForm {
  int bits = 4;       // of a code: 4 (0..15) or 8 (-128..127)
  bool runs = false;  // factors for every 16

  bool operator==(const CodeForm&) const = default;
};
// The form that holds weights of both.
constexpr CodeForm Common(CodeForm a, CodeForm b) {
  return {.bits = a.bits > b.bits ? a.bits : b.bits, .runs = a.runs || b.runs};
}

constexpr int64_t kQuantisedBlock = 32, kQuantisedRun = 16;

// One output's weights.
struct QuantisedColumn {
  const int8_t* codes;                     // [K]
  const uint16_t *scales, *offsets;        // [K/32], in half precision, as stored
  const int8_t *factors, *offset_factors;  // [K/16]; not read where the form has no runs
};

// Panels of 32 outputs (the last one 16 or 32 wide), so that one thread reads one stream; in each,
// for every block: 32 scales and 32 offsets in half precision, with runs 32 factors of the first
// run, 32 of the second and as many offset factors, then the codes of 16 outputs at a time, in
// vectors of 16 words: word 2 o + b of a vector has the codes of output o (of 8) at k = b, b + 2,
// .. lowest bits first.
int64_t QuantisedBytes(CodeForm form, int64_t in, int64_t out);

// Writes one output's weights into zeroed memory.
void SetQuantisedColumn(CodeForm form, int64_t in, int64_t out, int64_t column,
                        const QuantisedColumn& weights, std::byte* w);
// One output's weights [K], rounded to bf16.
void GetQuantisedColumn(CodeForm form, int64_t in, int64_t out, int64_t column, const std::byte* w,
                        BFloat16* x);

// y[B,N] = x[B,K] w[K,N] + addend, as DenseBf16.
void DenseQuantised(const Context& context, CodeForm form, int64_t rows, int64_t in, int64_t out,
                    const BFloat16* x, const std::byte* w, const float* addend,
                    int64_t addend_stride, float* y);

}  // namespace weft::kernels
