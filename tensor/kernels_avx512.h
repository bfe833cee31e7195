// The vector type of AVX-512. For the files compiled for it only: the tag has internal linkage in
// each, so has all that the templates make of it, and no code of the standard library is
// instantiated.
#pragma once

#include <immintrin.h>

#include "tensor/kernels_avx.h"
#include "tensor/kernels_loops.h"

namespace weft::kernels {
namespace {

struct Avx512 {
  using Float = __m512;
  using Int = int32_t __attribute__((vector_size(64)));
  using Mask = __mmask16;
  static constexpr int64_t kLanes = 16;
  static constexpr int kDepth = 1;

  static Float Set(float value) { return _mm512_set1_ps(value); }
  static Int SetInt(int32_t value) { return (Int)_mm512_set1_epi32(value); }
  static Float Load(const float* p) { return _mm512_loadu_ps(p); }
  static void Store(float* p, Float x) { _mm512_storeu_ps(p, x); }
  static Int LoadInt(const int32_t* p) { return (Int)_mm512_loadu_si512(p); }
  static void StoreInt(int32_t* p, Int x) { _mm512_storeu_si512(p, (__m512i)x); }
  static Mask FirstLanes(int64_t count) {
    return static_cast<Mask>(count >= 16 ? 0xffff : count <= 0 ? 0 : (1 << count) - 1);
  }
  static Float LoadMasked(const float* p, Mask mask) { return _mm512_maskz_loadu_ps(mask, p); }
  static void StoreMasked(float* p, Float x, Mask mask) { _mm512_mask_storeu_ps(p, mask, x); }
  // bf16: the upper half of a float; stores round to the nearest, ties to even.
  static Float LoadBf16(const uint16_t* p) {
    return Widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Float LoadBf16Masked(const uint16_t* p, Mask mask) {
    return Widen(_mm256_maskz_loadu_epi16(mask, p));
  }
  static void StoreBf16(uint16_t* p, Float x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), Narrow(x));
  }
  static void StoreBf16Masked(uint16_t* p, Float x, Mask mask) {
    _mm256_mask_storeu_epi16(p, mask, Narrow(x));
  }
  static Float Keep(Float x, Mask mask) { return _mm512_maskz_mov_ps(mask, x); }
  static Float KeepOr(Float x, Float other, Mask mask) {
    return _mm512_mask_mov_ps(other, mask, x);
  }
  static Float Fma(Float a, Float b, Float c) { return _mm512_fmadd_ps(a, b, c); }
  static Float MultiplyAdd(Float a, Float b, Float c) { return Fma(a, b, c); }
  static Float Min(Float a, Float b) { return _mm512_min_ps(a, b); }
  static Float Max(Float a, Float b) { return _mm512_max_ps(a, b); }
  static Float Sqrt(Float x) { return _mm512_sqrt_ps(x); }
  static Int Bits(Float x) { return (Int)x; }
  static Float FromBits(Int x) { return (Float)x; }
  static Float ToFloat(Int x) { return _mm512_cvtepi32_ps((__m512i)x); }
  static bool Any(Int mask) { return _mm512_movepi32_mask((__m512i)mask) != 0; }
  static float MaxLane(Float x) {
    return avx::MaxLane(_mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1)));
  }
  static float Fold16(const Float (&lanes)[1]) {
    return avx::Fold(_mm512_castps512_ps256(lanes[0]) + _mm512_extractf32x8_ps(lanes[0], 1));
  }

  static double SumSquaresBlock(const float* x, int64_t count) {
    __m512d low = _mm512_setzero_pd(), high = _mm512_setzero_pd();
    for (int64_t i = 0; i < count; i += 16) {
      const Float v = LoadMasked(x + i, FirstLanes(count - i));
      const __m512d a = _mm512_cvtps_pd(_mm512_castps512_ps256(v));
      const __m512d b = _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));
      low += a * a;
      high += b * b;
    }
    const __m512d eight = low + high;
    return avx::Fold(_mm512_castpd512_pd256(eight) + _mm512_extractf64x4_pd(eight, 1));
  }

  static void Transpose(int64_t rows, int64_t columns, const float* x, int64_t x_stride, float* y,
                        int64_t y_stride) {
    avx::Transpose(rows, columns, x, x_stride, y, y_stride);
  }

  static Float Widen(__m256i x) { return (Float)_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16); }
  static __m256i Narrow(Float x) {
    const Int bits = Bits(x);
    const Int rounded = bits + SetInt(0x7fff) + ((bits >> 16) & SetInt(1));
    return _mm512_cvtepi32_epi16((__m512i)((x != x ? bits | SetInt(0x400000) : rounded) >> 16));
  }

  // 24 accumulators of the 32 registers. Up to 6 rows take whole panels, 7 to 12 halves; a single
  // vector needs rows alone to hide the latency.
  static constexpr int64_t kMostVectors = 4, kMostRows = 12;
  static constexpr bool HasShape(int rows, int vectors) {
    return vectors == 4 ? rows <= 6 : vectors == 3 ? rows <= 8 : rows <= 12;
  }
  static TileShape ShapeFor(int64_t rows, int64_t vectors, TileUse use) {
    if (vectors == 3) return {.vectors = 3, .rows = 8};
    if (vectors < 3) return {.vectors = vectors, .rows = 12};
    const bool halves = rows <= 6 ? use == TileUse::kShared : rows <= 12;
    if (halves) return {.vectors = 2, .rows = 12};
    return {.vectors = 4, .rows = 6};
  }
};

}  // namespace
}  // namespace weft::kernels
