// What the AVX2 and AVX-512 files share: folds of eight lanes and the transposition of 8 x 8
// blocks. Included by those two alone; the unnamed namespace gives each its own copy.
#pragma once

#include <cstdint>
#include <immintrin.h>

namespace weft::kernels {
namespace {
namespace avx {

// (i with i + 4), then + 2, + 1.
inline float Fold(__m256 x) {
  const __m128 four = _mm256_castps256_ps128(x) + _mm256_extractf128_ps(x, 1);
  const __m128 two = four + _mm_movehl_ps(four, four);
  return two[0] + two[1];
}
inline double Fold(__m256d x) {
  const __m128d two = _mm256_castpd256_pd128(x) + _mm256_extractf128_pd(x, 1);
  return two[0] + two[1];
}
inline float MaxLane(__m256 x) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return two[0] > two[1] ? two[0] : two[1];
}

inline __m256i FirstLanes(int64_t count) {
  const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const int clamped = static_cast<int>(count < 0 ? 0 : count > 8 ? 8 : count);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(clamped), index);
}

// Up to 8 x 8 elements.
inline void TransposeBlock(int64_t rows, int64_t columns, const float* x, int64_t x_stride,
                           float* y, int64_t y_stride) {
  const bool whole = rows >= 8 && columns >= 8;
  const __m256i read = FirstLanes(columns), write = FirstLanes(rows);
  __m256 in[8], pairs[8], quads[8];
#pragma GCC unroll 8
  for (int r = 0; r < 8; ++r) {
    in[r] = whole      ? _mm256_loadu_ps(x + r * x_stride)
            : r < rows ? _mm256_maskload_ps(x + r * x_stride, read)
                       : _mm256_setzero_ps();
  }
#pragma GCC unroll 4
  for (int r = 0; r < 8; r += 2) {
    pairs[r] = _mm256_unpacklo_ps(in[r], in[r + 1]);
    pairs[r + 1] = _mm256_unpackhi_ps(in[r], in[r + 1]);
  }
#pragma GCC unroll 2
  for (int r = 0; r < 8; r += 4) {
    quads[r] = _mm256_shuffle_ps(pairs[r], pairs[r + 2], 0x44);
    quads[r + 1] = _mm256_shuffle_ps(pairs[r], pairs[r + 2], 0xee);
    quads[r + 2] = _mm256_shuffle_ps(pairs[r + 1], pairs[r + 3], 0x44);
    quads[r + 3] = _mm256_shuffle_ps(pairs[r + 1], pairs[r + 3], 0xee);
  }
#pragma GCC unroll 8
  for (int c = 0; c < 8; ++c) {
    const __m256 out = c < 4 ? _mm256_permute2f128_ps(quads[c], quads[c + 4], 0x20)
                             : _mm256_permute2f128_ps(quads[c - 4], quads[c], 0x31);
    if (whole) {
      _mm256_storeu_ps(y + c * y_stride, out);
    } else if (c < columns) {
      _mm256_maskstore_ps(y + c * y_stride, write, out);
    }
  }
}

inline void Transpose(int64_t rows, int64_t columns, const float* x, int64_t x_stride, float* y,
                      int64_t y_stride) {
  for (int64_t r = 0; r < rows; r += 8) {
    for (int64_t c = 0; c < columns; c += 8) {
      TransposeBlock(rows - r, columns - c, x + r * x_stride + c, x_stride, y + c * y_stride + r,
                     y_stride);
    }
  }
}

}  // namespace avx
}  // namespace
}  // namespace weft::kernels
