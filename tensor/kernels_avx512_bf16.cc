// Compiled with -march=x86-64-v4 -mavx512bf16: bf16 products by the instruction made for them, of
// plain and of quantised weights.
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

// Weights of 16 outputs in the order of their codes: lane 2 o + b of `low` belongs to output o and
// an even (b = 0) or odd k, `high` to outputs 8 to 15. Two such vectors, rounded, are a vector of
// pairs.
template <CodeWidth kWidth>
struct Codes {
  static constexpr int kEach = kWidth == CodeWidth::k4 ? 8 : 4;  // codes in a word
  static constexpr int kVectors = static_cast<int>(kQuantisedBlock) / (2 * kEach);
  static constexpr int64_t kGroupBytes = kVectors * 128;

  template <int kAt>
  [[gnu::always_inline]] static __m512 Code(__m512i words) {
    if constexpr (kWidth == CodeWidth::k4) {
      const __m512 table = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
      return _mm512_permutexvar_ps(_mm512_srli_epi32(words, 4 * kAt), table);
    } else {
      return _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(words, 24 - 8 * kAt), 24));
    }
  }

  // use(index of the pair, pairs) for the pairs of one group in a block.
  template <class F>
  [[gnu::always_inline]] static void Read(const std::byte* block, int64_t outputs, int64_t group,
                                          F&& use) {
    const auto halves = [&](int64_t at) {
      return _mm512_cvtph_ps(
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + 2 * (at + 16 * group))));
    };
    const __m512 scale = halves(0), offset = halves(outputs);
    const __m512i first = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(8));
    const __m512 scale_low = _mm512_permutexvar_ps(first, scale);
    const __m512 scale_high = _mm512_permutexvar_ps(second, scale);
    const __m512 offset_low = _mm512_permutexvar_ps(first, offset);
    const __m512 offset_high = _mm512_permutexvar_ps(second, offset);
    const std::byte* words = block + outputs * 4 + group * kGroupBytes;
    Vectors<0>(words, scale_low, scale_high, offset_low, offset_high, use);
  }

 private:
  template <int kVector, class F>
  [[gnu::always_inline]] static void Vectors(const std::byte* words, __m512 scale_low,
                                             __m512 scale_high, __m512 offset_low,
                                             __m512 offset_high, F&& use) {
    const __m512i low = _mm512_loadu_si512(words + kVector * 128);
    const __m512i high = _mm512_loadu_si512(words + kVector * 128 + 64);
    Each<kVector * kEach, 0>(low, high, scale_low, scale_high, offset_low, offset_high, use);
    if constexpr (kVector + 1 < kVectors) {
      Vectors<kVector + 1>(words, scale_low, scale_high, offset_low, offset_high, use);
    }
  }
  template <int kFirst, int kAt, class F>
  [[gnu::always_inline]] static void Each(__m512i low, __m512i high, __m512 scale_low,
                                          __m512 scale_high, __m512 offset_low, __m512 offset_high,
                                          F&& use) {
    const __m512 a = _mm512_fmadd_ps(scale_low, Code<kAt>(low), offset_low);
    const __m512 b = _mm512_fmadd_ps(scale_high, Code<kAt>(high), offset_high);
    use(kFirst + kAt, _mm512_cvtne2ps_pbh(b, a));
    if constexpr (kAt + 1 < kEach) {
      Each<kFirst, kAt + 1>(low, high, scale_low, scale_high, offset_low, offset_high, use);
    }
  }
};

template <CodeWidth kWidth, int kRows, int kGroups>
void Product(const QuantisedWork& work, int64_t group) {
  using C = Codes<kWidth>;
  const int64_t block_bytes = work.outputs * 4 + work.outputs / 16 * C::kGroupBytes;
  const std::byte* block = work.w;
  const uint32_t* x = work.x;
  const int64_t x_stride = work.in / 2;
  __m512 sum[kGroups][kRows];
#pragma GCC unroll 8
  for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sum[g][r] = _mm512_setzero_ps();
  }
  for (int64_t b = 0; b < work.in / kQuantisedBlock; ++b, block += block_bytes, x += 16) {
    _mm_prefetch(reinterpret_cast<const char*>(block + 6 * block_bytes), _MM_HINT_T0);
#pragma GCC unroll 8
    for (int g = 0; g < kGroups; ++g) {
      C::Read(block, work.outputs, group + g, [&](int pair, __m512bh w) {
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
    const int64_t column = (group + g) * 16;
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

template <CodeWidth kWidth, int kRows>
void Products(const QuantisedWork& work) {
  int64_t group = work.group;
  for (; group + 2 <= work.group_end; group += 2) Product<kWidth, kRows, 2>(work, group);
  if (group < work.group_end) Product<kWidth, kRows, 1>(work, group);
}

template <CodeWidth kWidth>
void ProductsOfRows(const QuantisedWork& work) {
  switch (work.rows) {
    case 1:
      return Products<kWidth, 1>(work);
    case 2:
      return Products<kWidth, 2>(work);
    case 3:
      return Products<kWidth, 3>(work);
    default:
      return Products<kWidth, 4>(work);
  }
}

void DenseQuantised(const QuantisedWork& work) {
  const FlushDenormals flush;
  if (work.width == CodeWidth::k4) {
    ProductsOfRows<CodeWidth::k4>(work);
  } else {
    ProductsOfRows<CodeWidth::k8>(work);
  }
}

template <CodeWidth kWidth>
void UnpackCodes(const QuantisedWork& work, uint32_t* pairs) {
  using C = Codes<kWidth>;
  const int64_t groups = work.outputs / 16;
  const int64_t block_bytes = work.outputs * 4 + groups * C::kGroupBytes;
  const std::byte* block = work.w;
  for (int64_t b = 0; b < work.in / kQuantisedBlock; ++b, block += block_bytes) {
    for (int64_t group = 0; group < groups; ++group) {
      uint32_t* const to = pairs + group * 16;
      C::Read(block, work.outputs, group, [&](int pair, __m512bh w) {
        _mm512_storeu_si512(to + pair * work.outputs, reinterpret_cast<__m512i>(w));
      });
    }
    pairs += kQuantisedBlock / 2 * work.outputs;
  }
}

void UnpackQuantised(const QuantisedWork& work, uint32_t* pairs) {
  if (work.width == CodeWidth::k4) {
    UnpackCodes<CodeWidth::k4>(work, pairs);
  } else {
    UnpackCodes<CodeWidth::k8>(work, pairs);
  }
}

constexpr PairTable WithCodes(PairTable table) {
  table.dense_quantised = DenseQuantised;
  table.unpack_quantised = UnpackQuantised;
  return table;
}

}  // namespace

constinit const PairTable kAvx512Bf16Pairs = WithCodes(MakePairTable<Avx512Bf16>());

}  // namespace weft::kernels
