// The vector type of one lane: the portable level and the reference kernels. fmaf is correctly
// rounded by definition, so a single lane gives the bits that the wide types give.
#pragma once

#include <cstdint>

#include "tensor/kernels_loops.h"

namespace weft::kernels {

struct Scalar {
  using Float = float;
  using Int = int32_t;
  using Mask = bool;
  static constexpr int64_t kLanes = 1;
  static constexpr int kDepth = 1;

  static float Set(float value) { return value; }
  static int32_t SetInt(int32_t value) { return value; }
  static float Load(const float* p) { return *p; }
  static void Store(float* p, float x) { *p = x; }
  static int32_t LoadInt(const int32_t* p) { return *p; }
  static void StoreInt(int32_t* p, int32_t x) { *p = x; }
  static bool FirstLanes(int64_t count) { return count > 0; }
  static float LoadMasked(const float* p, bool mask) { return mask ? *p : 0.0f; }
  static void StoreMasked(float* p, float x, bool mask) {
    if (mask) *p = x;
  }
  // bf16: the upper half of a float; stores round to the nearest, ties to even.
  static float LoadBf16(const uint16_t* p) { return FromBits(static_cast<int32_t>(*p) << 16); }
  static float LoadBf16Masked(const uint16_t* p, bool mask) { return mask ? LoadBf16(p) : 0.0f; }
  static void StoreBf16(uint16_t* p, float x) {
    const auto bits = static_cast<uint32_t>(Bits(x));
    const uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
    *p = static_cast<uint16_t>((x != x ? bits | 0x400000 : rounded) >> 16);
  }
  static void StoreBf16Masked(uint16_t* p, float x, bool mask) {
    if (mask) StoreBf16(p, x);
  }
  static float Keep(float x, bool mask) { return mask ? x : 0.0f; }
  static float KeepOr(float x, float other, bool mask) { return mask ? x : other; }
  static float Fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static float MultiplyAdd(float a, float b, float c) { return Fma(a, b, c); }
  static float Min(float a, float b) { return a < b ? a : b; }
  static float Max(float a, float b) { return a > b ? a : b; }
  static float Sqrt(float x) { return __builtin_sqrtf(x); }
  static int32_t Bits(float x) { return __builtin_bit_cast(int32_t, x); }
  static float FromBits(int32_t x) { return __builtin_bit_cast(float, x); }
  static float ToFloat(int32_t x) { return static_cast<float>(x); }
  static bool Any(bool mask) { return mask; }
  static float MaxLane(float x) { return x; }
  static float Fold16(const float (&lanes)[16]) { return Fold(lanes); }

  static double SumSquaresBlock(const float* x, int64_t count) {
    double lanes[16] = {};
    for (int64_t i = 0; i < count; ++i) lanes[i % 16] += static_cast<double>(x[i]) * x[i];
    return Fold(lanes);
  }

  static void Transpose(int64_t rows, int64_t columns, const float* x, int64_t x_stride, float* y,
                        int64_t y_stride) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) y[c * y_stride + r] = x[r * x_stride + c];
    }
  }

  static constexpr int64_t kMostVectors = 16, kMostRows = 1;
  static constexpr bool HasShape(int rows, int vectors) { return rows == 1 && vectors == 16; }
  static TileShape ShapeFor(int64_t, int64_t, TileUse) { return {.vectors = 16, .rows = 1}; }

 private:
  template <class T>
  static T Fold(const T (&lanes)[16]) {
    T sum[16];
    for (int i = 0; i < 16; ++i) sum[i] = lanes[i];
    for (int half = 8; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) sum[i] += sum[i + half];
    }
    return sum[0];
  }
};

}  // namespace weft::kernels
