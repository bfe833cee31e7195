// Compiled with -march=x86-64-v4 -mavx512bf16: bf16 products by the instruction made for them, of
// plain and of quantised weights.
#include "tensor/kernels_avx512.h"
#include "tensor/kernels_avx512_codes.h"
#include "tensor/kernels_pairs.h"

namespace weft::kernels {
namespace {

struct Avx512Bf16 : Avx512 {
  static constexpr int kDepth = 2;
  static Float MultiplyAdd(Float a, Float b, Float c) {
    return _mm512_dpbf16_ps(c, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
};

template <CodeForm kForm, int kRows, int kGroups>
void Product(const QuantisedWork& work) {
  using C = Codes<kForm>;
  constexpr int64_t kOutputs = 16 * kGroups;
  constexpr int64_t kBlockBytes = C::BlockBytes(kOutputs);
  constexpr int64_t kAhead = 4096;
  const std::byte* block = work.w;
  const uint32_t* x = work.x;
  const int64_t x_stride = work.in / 2;
  __m512 sum[kGroups][kRows];
#pragma GCC unroll 8
  for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sum[g][r] = _mm512_setzero_ps();
  }
  for (int64_t b = 0; b < work.in / kQuantisedBlock; ++b, block += kBlockBytes, x += 16) {
#pragma GCC unroll 32
    for (int64_t line = 0; line < kBlockBytes; line += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(block + kAhead + line), _MM_HINT_T0);
    }
#pragma GCC unroll 8
    for (int g = 0; g < kGroups; ++g) {
      C::Read(block, kOutputs, g, [&](int pair, __m512bh w) {
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          const __m512i pairs = _mm512_set1_epi32(static_cast<int32_t>(x[r * x_stride + pair]));
          sum[g][r] = _mm512_dpbf16_ps(sum[g][r], w, reinterpret_cast<__m512bh>(pairs));
        }
      });
    }
  }
#pragma GCC unroll 8
  for (int g = 0; g < kGroups; ++g) {
    const int64_t column = g * 16;
    const __mmask16 mask = Avx512::FirstLanes(work.columns - column);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      __m512 y = sum[g][r];
      if (work.addend != nullptr) {
        y += Avx512::LoadMasked(work.addend + r * work.addend_stride + column, mask);
      }
      Avx512::StoreMasked(work.y + r * work.y_stride + column, y, mask);
    }
  }
}

template <CodeForm kForm, int kRows>
void Products(const QuantisedWork& work) {
  if (work.outputs == 32) {
    Product<kForm, kRows, 2>(work);
  } else {
    Product<kForm, kRows, 1>(work);
  }
}

template <CodeForm kForm>
void ProductsOfRows(const QuantisedWork& work) {
  switch (work.rows) {
    case 1:
      return Products<kForm, 1>(work);
    case 2:
      return Products<kForm, 2>(work);
    case 3:
      return Products<kForm, 3>(work);
    default:
      return Products<kForm, 4>(work);
  }
}

void DenseQuantised(const QuantisedWork& work) {
  const FlushDenormals flush;
  WithForm(work.form, [&]<CodeForm kForm>() { ProductsOfRows<kForm>(work); });
}

constexpr PairTable WithCodes(PairTable table) {
  table.dense_quantised = DenseQuantised;
  table.unpack_quantised = UnpackQuantised;
  return table;
}

}  // namespace

constinit const PairTable kAvx512Bf16Pairs = WithCodes(MakePairTable<Avx512Bf16>());

}  // namespace weft::kernels
