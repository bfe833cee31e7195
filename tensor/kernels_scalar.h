// The vector type of one lane: the portable level and the reference kernels. fmaf is correctly rounded by definition, so
// a single lane gives the bits that the wide types give.
#pragma once

#include <cstdint>

namespace weft::kernels {

struct Scalar {
  using Float = float;
  using Int = int32_t;
  static constexpr int kLanes = 1;

  static float Set(float value) { return value; }
  static int32_t SetInt(int32_t value) { return value; }
  static float Load(const float* p) { return *p; }
  static void Store(float* p, float x) { *p = x; }
  static int32_t LoadInt(const int32_t* p) { return *p; }
  static void StoreInt(int32_t* p, int32_t x) { *p = x; }
  static float Fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static float Sqrt(float x) { return __builtin_sqrtf(x); }
  static int32_t Bits(float x) { return __builtin_bit_cast(int32_t, x); }
  static float FromBits(int32_t x) { return __builtin_bit_cast(float, x); }
  static float ToFloat(int32_t x) { return static_cast<float>(x); }
  static bool Any(bool mask) { return mask; }
};

}  // namespace weft::kernels
