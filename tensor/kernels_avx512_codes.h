// Reading quantised weights (kernels_quantised.h) into pairs, for the files compiled for AVX-512
// with bf16; internal to each as the vector type is.
#pragma once

#include "tensor/kernels_avx512.h"
#include "tensor/kernels_table.h"

namespace weft::kernels {
namespace {

// Weights of 16 outputs in the order of their codes: lane 2 o + b of `low` belongs to output o and
// an even (b = 0) or odd k, `high` to outputs 8 to 15. Two such vectors, rounded, are a vector of
// pairs.
template <CodeForm kForm>
struct Codes {
  static constexpr int kEach = 32 / kForm.bits;  // codes in a word
  static constexpr int kVectors = static_cast<int>(kQuantisedBlock) / (2 * kEach);
  static constexpr int64_t kGroupBytes = kVectors * 128;
  static constexpr int64_t kHeaderBytes = kForm.runs ? 8 : 4;  // for each output
  static constexpr int64_t BlockBytes(int64_t outputs) {
    return outputs * kHeaderBytes + outputs / 16 * kGroupBytes;
  }

  template <int kAt>
  [[gnu::always_inline]] static __m512 Code(__m512i words) {
    if constexpr (kForm.bits == 4) {
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
    const std::byte* const words = block + outputs * kHeaderBytes + group * kGroupBytes;
    if constexpr (kForm.runs) {
      const auto factors = [&](int64_t row) {
        return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(
            reinterpret_cast<const __m128i*>(block + outputs * (4 + row) + 16 * group))));
      };
      constexpr int kHalf = kVectors / 2;
      Vectors<0, kHalf>(words, scale * factors(0), offset * factors(2), use);
      Vectors<kHalf, kVectors>(words, scale * factors(1), offset * factors(3), use);
    } else {
      Vectors<0, kVectors>(words, scale, offset, use);
    }
  }

 private:
  // Vectors [kBegin, kEnd) of the words, which share scales and offsets.
  template <int kBegin, int kEnd, class F>
  [[gnu::always_inline]] static void Vectors(const std::byte* words, __m512 scale, __m512 offset,
                                             F&& use) {
    const __m512i first = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(8));
    const __m512 scale_low = _mm512_permutexvar_ps(first, scale);
    const __m512 scale_high = _mm512_permutexvar_ps(second, scale);
    const __m512 offset_low = _mm512_permutexvar_ps(first, offset);
    const __m512 offset_high = _mm512_permutexvar_ps(second, offset);
    Vector<kBegin, kEnd>(words, scale_low, scale_high, offset_low, offset_high, use);
  }
  template <int kVector, int kEnd, class F>
  [[gnu::always_inline]] static void Vector(const std::byte* words, __m512 scale_low,
                                            __m512 scale_high, __m512 offset_low,
                                            __m512 offset_high, F&& use) {
    const __m512i low = _mm512_loadu_si512(words + kVector * 128);
    const __m512i high = _mm512_loadu_si512(words + kVector * 128 + 64);
    Each<kVector * kEach, 0>(low, high, scale_low, scale_high, offset_low, offset_high, use);
    if constexpr (kVector + 1 < kEnd) {
      Vector<kVector + 1, kEnd>(words, scale_low, scale_high, offset_low, offset_high, use);
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

template <CodeForm kForm>
void UnpackCodes(const QuantisedWork& work, int64_t stride, uint32_t* pairs) {
  using C = Codes<kForm>;
  const int64_t groups = work.outputs / 16, block_bytes = C::BlockBytes(work.outputs);
  const std::byte* block = work.w;
  for (int64_t b = 0; b < work.in / kQuantisedBlock; ++b, block += block_bytes) {
    for (int64_t group = 0; group < groups; ++group) {
      uint32_t* const to = pairs + group * 16;
      C::Read(block, work.outputs, group, [&](int pair, __m512bh w) {
        _mm512_storeu_si512(to + pair * stride, reinterpret_cast<__m512i>(w));
      });
    }
    pairs += kQuantisedBlock / 2 * stride;
  }
}

void UnpackQuantised(const QuantisedWork& work, int64_t stride, uint32_t* pairs) {
  WithForm(work.form, [&]<CodeForm kForm>() { UnpackCodes<kForm>(work, stride, pairs); });
}

}  // namespace
}  // namespace weft::kernels
