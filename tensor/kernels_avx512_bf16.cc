// Compiled with -march=x86-64-v4 -mavx512bf16: bf16 products by the instruction made for them.
#include "tensor/kernels_avx512.h"
#include "tensor/kernels_pairs.h"

namespace weft::kernels {
namespace {

struct Avx512Bf16 : Avx512 {
  static constexpr int kDepth = 2;
  static Float MultiplyAdd(Float a, Float b, Float c) {
    return _mm512_dpbf16_ps(c, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
};

}  // namespace

constinit const PairTable kAvx512Bf16Pairs = MakePairTable<Avx512Bf16>();

}  // namespace weft::kernels
