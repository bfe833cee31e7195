// Compiled with -mavx2 -mfma. Nothing here may be shared with other files: the tag has internal
// linkage, so has all that the templates make of it, and no code of the standard library is
// instantiated.
#include <immintrin.h>

#include "tensor/kernels_avx.h"
#include "tensor/kernels_make_table.h"
#include "tensor/kernels_pairs.h"

namespace weft::kernels {
namespace {

struct Avx2 {
  using Float = __m256;
  using Int = int32_t __attribute__((vector_size(32)));
  using Mask = __m256i;
  static constexpr int64_t kLanes = 8;
  static constexpr int kDepth = 1;

  static Float Set(float value) { return _mm256_set1_ps(value); }
  static Int SetInt(int32_t value) { return (Int)_mm256_set1_epi32(value); }
  static Float Load(const float* p) { return _mm256_loadu_ps(p); }
  static void Store(float* p, Float x) { _mm256_storeu_ps(p, x); }
  static Int LoadInt(const int32_t* p) {
    return (Int)_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static void StoreInt(int32_t* p, Int x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), (__m256i)x);
  }
  static Mask FirstLanes(int64_t count) { return avx::FirstLanes(count); }
  static Float LoadMasked(const float* p, Mask mask) { return _mm256_maskload_ps(p, mask); }
  static void StoreMasked(float* p, Float x, Mask mask) { _mm256_maskstore_ps(p, mask, x); }
  // bf16: the upper half of a float; stores round to the nearest, ties to even.
  static Float LoadBf16(const uint16_t* p) {
    return Widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Float LoadBf16Masked(const uint16_t* p, Mask mask) {
    alignas(16) uint16_t lanes[8] = {};
    for (int i = 0; i < 8; ++i) {
      if (((Int)mask)[i] != 0) lanes[i] = p[i];
    }
    return LoadBf16(lanes);
  }
  static void StoreBf16(uint16_t* p, Float x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), Narrow(x));
  }
  static void StoreBf16Masked(uint16_t* p, Float x, Mask mask) {
    alignas(16) uint16_t lanes[8];
    StoreBf16(lanes, x);
    for (int i = 0; i < 8; ++i) {
      if (((Int)mask)[i] != 0) p[i] = lanes[i];
    }
  }
  static Float Keep(Float x, Mask mask) { return _mm256_and_ps(x, (Float)mask); }
  static Float KeepOr(Float x, Float other, Mask mask) {
    return _mm256_blendv_ps(other, x, (Float)mask);
  }
  static Float Fma(Float a, Float b, Float c) { return _mm256_fmadd_ps(a, b, c); }
  static Float MultiplyAdd(Float a, Float b, Float c) { return Fma(a, b, c); }
  static Float Min(Float a, Float b) { return _mm256_min_ps(a, b); }
  static Float Max(Float a, Float b) { return _mm256_max_ps(a, b); }
  static Float Sqrt(Float x) { return _mm256_sqrt_ps(x); }
  static Int Bits(Float x) { return (Int)x; }
  static Float FromBits(Int x) { return (Float)x; }
  static Float ToFloat(Int x) { return _mm256_cvtepi32_ps((__m256i)x); }
  static bool Any(Int mask) { return _mm256_movemask_ps((Float)mask) != 0; }
  static float MaxLane(Float x) { return avx::MaxLane(x); }
  static float Fold16(const Float (&lanes)[2]) { return avx::Fold(lanes[0] + lanes[1]); }

  static double SumSquaresBlock(const float* x, int64_t count) {
    __m256d sum[4];
    for (__m256d& s : sum) s = _mm256_setzero_pd();
    for (int64_t i = 0; i < count; i += 16) {
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const int64_t at = i + 8 * half;
        const Float v = count - at >= 8 ? Load(x + at) : LoadMasked(x + at, FirstLanes(count - at));
        const __m256d a = _mm256_cvtps_pd(_mm256_castps256_ps128(v));
        const __m256d b = _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
        sum[2 * half] += a * a;
        sum[2 * half + 1] += b * b;
      }
    }
    return avx::Fold((sum[0] + sum[2]) + (sum[1] + sum[3]));
  }

  static void Transpose(int64_t rows, int64_t columns, const float* x, int64_t x_stride, float* y,
                        int64_t y_stride) {
    avx::Transpose(rows, columns, x, x_stride, y, y_stride);
  }

  static Float Widen(__m128i x) {
    return (Float)_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16);
  }
  static __m128i Narrow(Float x) {
    const Int bits = Bits(x);
    const Int rounded = bits + SetInt(0x7fff) + ((bits >> 16) & SetInt(1));
    const Int wide = ((x != x ? bits | SetInt(0x400000) : rounded) >> 16) & SetInt(0xffff);
    return _mm_packus_epi32(_mm256_castsi256_si128((__m256i)wide),
                            _mm256_extracti128_si256((__m256i)wide, 1));
  }

  // 12 accumulators of the 16 registers: 6 rows of 16 columns. One or two rows go wider, to hide
  // the latency.
  static constexpr int64_t kMostVectors = 8, kMostRows = 6;
  static constexpr bool HasShape(int rows, int vectors) {
    return vectors % 2 == 0 && (vectors == 2 || rows == 1 || (rows == 2 && vectors == 4));
  }
  static TileShape ShapeFor(int64_t rows, int64_t vectors, TileUse use) {
    if (rows > 2 || use == TileUse::kShared) return {.vectors = 2, .rows = 6};
    if (rows == 2) return {.vectors = vectors < 4 ? vectors : 4, .rows = 2};
    return {.vectors = vectors, .rows = 1};
  }
};

}  // namespace

constinit const KernelTable kAvx2Kernels = MakeTable<Avx2>();
constinit const PairTable kAvx2Pairs = MakePairTable<EmulatedPairs<Avx2>>();
constinit const PairTable kAvx2Blocks = MakePairTable<BlockedPairs<Avx2>>();

}  // namespace weft::kernels
