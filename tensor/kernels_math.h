// Transcendental functions in f32, written once over a vector type and equal in every bit at every
// instruction set: only +, -, *, / and explicit fused multiply-adds, no estimates, no libm.
// Everything here is a template on the vector type S, whose tag lives in an unnamed namespace of
// the file that instantiates it, so code compiled for one instruction set is never linked into
// another. S gives Float, Int (32 bits) and kLanes; Set, SetInt, Fma, Sqrt, Bits, FromBits; Min and
// Max, which return their second operand when either is NaN or both are zero. Error bounds are in
// units in the last place of the result, held by tests/tensor/kernels_math_test.cc.
#pragma once

#include <cstdint>

namespace weft::kernels {

// Reduces x to r in [-pi/4, pi/4] with x = r + quadrant pi/2 (mod 2 pi), for any finite x; r is NaN
// otherwise. Exact to f32; used where the three-constant reduction runs out.
float ReduceLargeAngle(float x, int32_t* quadrant);

template <class S>
struct Math {
  using Float = typename S::Float;
  using Int = typename S::Int;

  static Float Set(float value) { return S::Set(value); }
  static Int SetInt(int32_t value) { return S::SetInt(value); }
  static Float Fma(Float a, Float b, Float c) { return S::Fma(a, b, c); }

  static Float Abs(Float x) { return S::FromBits(S::Bits(x) & SetInt(0x7fffffff)); }
  // The magnitude of x with the sign of y.
  static Float CopySign(Float x, Float y) {
    return S::FromBits((S::Bits(x) & SetInt(0x7fffffff)) | (S::Bits(y) & SetInt(INT32_MIN)));
  }
  static Float NotANumber() { return S::FromBits(SetInt(0x7fc00000)); }

  // Nearest integer to a * b for |a b| < 2^22: adding 1.5 * 2^23 leaves it in the low bits of the
  // mantissa.
  static Float RoundProduct(Float a, Float b, Int* integer) {
    const Float magic = Set(12582912.0f);
    const Float shifted = Fma(a, b, magic);
    *integer = S::Bits(shifted) - SetInt(0x4b400000);
    return shifted - magic;
  }
  // 2^n for -126 <= n <= 127.
  static Float PowerOfTwo(Int n) { return S::FromBits((n + SetInt(127)) << 23); }

  // x - k ln 2, ln 2 in two parts of which k times the first is exact.
  static Float LessLog2(Float x, Float k) {
    return Fma(k, Set(2.12194440e-4f), Fma(k, Set(-0.693359375f), x));
  }
  // exp(r) - 1 for |r| <= ln 2 / 2 (Cephes expf coefficients); the polynomial in steps of r^2,
  // which halves its latency.
  static Float Expm1Near0(Float r) {
    const Float r2 = r * r;
    Float p = Fma(Set(1.9875691500e-4f), r, Set(1.3981999507e-3f));
    p = Fma(p, r2, Fma(Set(8.3334519073e-3f), r, Set(4.1665795894e-2f)));
    p = Fma(p, r2, Fma(Set(1.6666665459e-1f), r, Set(5.0000001201e-1f)));
    return Fma(p, r2, r);
  }

  // 1 ulp. The clamps only keep n in range: beyond them the result is 0 or infinity anyway. Two
  // factors of 2^(n/2), so that results below 2^-126 are rounded once.
  static Float Exp(Float x) {
    x = S::Min(Set(90.0f), S::Max(Set(-105.0f), x));
    Int n;
    const Float k = RoundProduct(x, Set(kLog2E), &n);
    const Float p = Expm1Near0(LessLog2(x, k)) + Set(1.0f);
    const Int half = n >> 1;
    return p * PowerOfTwo(half) * PowerOfTwo(n - half);
  }

  // exp(x) - 1 for x <= 20, 1 ulp.
  static Float Expm1(Float x) {
    x = S::Max(Set(-30.0f), x);
    Int n;
    const Float k = RoundProduct(x, Set(kLog2E), &n);
    const Float scale = PowerOfTwo(n);
    return Fma(scale, Expm1Near0(LessLog2(x, k)), scale - Set(1.0f));
  }

  // 1 ulp. Zero gives -infinity, negative numbers NaN.
  static Float Log(Float x) {
    const Float a = Abs(x);
    const auto tiny = a < Set(1.17549435e-38f);
    const Float scaled = tiny ? a * Set(8388608.0f) : a;
    const Int offset = S::Bits(scaled) - SetInt(0x3f3504f3);  // of sqrt(1/2): the mantissa will lie
                                                              // in [sqrt(1/2), sqrt(2))
    const Float exponent = S::ToFloat(offset >> 23) + (tiny ? Set(-23.0f) : Set(0.0f));
    const Float mantissa = S::FromBits((offset & SetInt(0x007fffff)) + SetInt(0x3f3504f3));
    Float y = LogNear1(mantissa - Set(1.0f), exponent);
    y = x == Set(__builtin_inff()) ? x : y;
    y = x == Set(0.0f) ? Set(-__builtin_inff()) : y;
    y = x < Set(0.0f) ? NotANumber() : y;
    return x != x ? x : y;
  }
  // log(1 + f) + exponent ln 2 for 1 + f in [sqrt(1/2), sqrt(2)] (Cephes logf coefficients).
  static Float LogNear1(Float f, Float exponent) {
    const Float f2 = f * f;
    Float p = Fma(Set(7.0376836292e-2f), f, Set(-1.1514610310e-1f));
    p = Fma(p, f2, Fma(Set(1.1676998740e-1f), f, Set(-1.2420140846e-1f)));
    p = Fma(p, f2, Fma(Set(1.4249322787e-1f), f, Set(-1.6668057665e-1f)));
    p = Fma(p, f2, Fma(Set(2.0000714765e-1f), f, Set(-2.4999993993e-1f)));
    p = Fma(p, f, Set(3.3333331174e-1f));
    p = p * (f * f2);
    p = Fma(exponent, Set(-2.12194440e-4f), p);
    p = Fma(f2, Set(-0.5f), p);
    return Fma(exponent, Set(0.693359375f), f + p);
  }

  // 2 ulp: e / (e + 2) with e = expm1(2|x|) and x's sign. ln 2 in one part is enough: its error
  // grows with n, the weight of e's error falls faster.
  static Float Tanh(Float x) {
    const Float a = S::Min(Set(10.0f), Abs(x));
    Int n;
    const Float k = RoundProduct(a, Set(2 * kLog2E), &n);
    const Float p = Expm1Near0(Fma(k, Set(-0.69314718055994531f), a + a));
    const Float scale = PowerOfTwo(n);
    const Float e = Fma(scale, p, scale - Set(1.0f));
    return CopySign(e / (e + Set(2.0f)), x);
  }

  // 2 ulp, from exp(-|x|), so that nothing overflows.
  static Float Sigmoid(Float x) {
    const Float e = Exp(-Abs(x));
    return (x < Set(0.0f) ? e : Set(1.0f)) / (e + Set(1.0f));
  }

  // log(1 + exp(x)) = max(x, 0) + log(1 + e), e = exp(-|x|), 1.5 ulp. 1 + e is never formed: e or
  // (e - 1) / 2 is what the logarithm's polynomial wants.
  static Float Softplus(Float x) {
    const Float e = Exp(-Abs(x));
    const auto large = e > Set(0.41421356f);
    const Float f = large ? (e - Set(1.0f)) * Set(0.5f) : e;
    const Float tail = LogNear1(f, large ? Set(1.0f) : Set(0.0f));
    return S::Max(Set(0.0f), x) + tail;
  }

  // Sine for `shift` 0, cosine for 1; 1.5 ulp (Cephes sinf and cosf coefficients).
  static Float SinCos(Float x, int32_t shift) {
    Int quadrant;
    const Float k = RoundProduct(x, Set(0.636619772f), &quadrant);
    // pi/2 in three positive parts, so that -0 stays -0.
    Float r = Fma(k, Set(-1.57079625f), x);
    r = Fma(k, Set(-7.54978942e-08f), r);
    r = Fma(k, Set(-5.39030295e-15f), r);
    if (S::Any(!(Abs(x) <= Set(kLargeAngle)))) ReduceLargeLanes(x, &r, &quadrant);
    quadrant = quadrant + SetInt(shift);
    const Float r2 = r * r;
    Float s = Set(-1.9515295891e-4f);
    s = Fma(s, r2, Set(8.3321608736e-3f));
    s = Fma(s, r2, Set(-1.6666654611e-1f));
    s = CopySign(Fma(s * r2, r, r), r);  // the sign of a zero would be lost
    Float c = Set(2.443315711809948e-5f);
    c = Fma(c, r2, Set(-1.388731625493765e-3f));
    c = Fma(c, r2, Set(4.166664568298827e-2f));
    c = Fma(c * r2, r2, Fma(r2, Set(-0.5f), Set(1.0f)));
    const Float magnitude = (quadrant & SetInt(1)) != SetInt(0) ? c : s;
    return S::FromBits(S::Bits(magnitude) ^ ((quadrant & SetInt(2)) << 30));
  }
  static Float Sin(Float x) { return SinCos(x, 0); }
  static Float Cos(Float x) { return SinCos(x, 1); }

  // x Phi(x) by the tanh form of Hendrycks and Gimpel 2016; also returns t = tanh(..) for the
  // gradient.
  static Float GeluTanh(Float x) {
    return Tanh(Set(0.797884561f) * Fma(Set(0.044715f) * x, x * x, x));
  }
  static Float Gelu(Float x) {
    const Float half = Set(0.5f) * x;
    return Fma(half, GeluTanh(x), half);
  }
  static Float GeluGradient(Float x) {
    const Float t = GeluTanh(x);
    const Float inner = Fma(Set(0.134145f) * x, x, Set(1.0f)) * Set(0.797884561f);
    const Float slope = Set(0.5f) * x * inner;
    return Fma(Fma(-t, t, Set(1.0f)), slope, Fma(Set(0.5f), t, Set(0.5f)));
  }

  // The error function (Cephes erff and erfcf coefficients), 3 ulp.
  static Float Erf(Float x) {
    const Float a = S::Min(Set(10.0f), Abs(x));
    const Float x2 = a * a;
    Float near = Set(7.853861353153693e-5f);
    near = Fma(near, x2, Set(-8.010193625184903e-4f));
    near = Fma(near, x2, Set(5.188327685732524e-3f));
    near = Fma(near, x2, Set(-2.685381193529856e-2f));
    near = Fma(near, x2, Set(1.128358514861418e-1f));
    near = Fma(near, x2, Set(-3.761262582423300e-1f));
    near = Fma(near, x2, Set(1.128379165726710f)) * a;
    const Float q = Set(1.0f) / S::Max(Set(1.0f), a), y = q * q;
    Float p = Set(2.326819970068386e-2f);
    p = Fma(p, y, Set(-1.387039388740657e-1f));
    p = Fma(p, y, Set(3.687424674597105e-1f));
    p = Fma(p, y, Set(-5.824733027278666e-1f));
    p = Fma(p, y, Set(6.210004621745983e-1f));
    p = Fma(p, y, Set(-4.944515323274145e-1f));
    p = Fma(p, y, Set(3.404879937665872e-1f));
    p = Fma(p, y, Set(-2.741127028184656e-1f));
    p = Fma(p, y, Set(5.638259427386472e-1f));
    Float r = Set(-1.047766399936249e+1f);
    r = Fma(r, y, Set(1.297719955372516e+1f));
    r = Fma(r, y, Set(-7.495518717768503f));
    r = Fma(r, y, Set(2.921019019210786f));
    r = Fma(r, y, Set(-1.015265279202700f));
    r = Fma(r, y, Set(4.218463358204948e-1f));
    r = Fma(r, y, Set(-2.820767439740514e-1f));
    r = Fma(r, y, Set(5.641895067754075e-1f));
    const Float far = Set(1.0f) - Exp(-x2) * q * (a < Set(2.0f) ? p : r);
    return x != x ? x : CopySign(a < Set(1.0f) ? near : far, x);
  }
  static Float GeluErf(Float x) {
    const Float half = Set(0.5f) * x;
    return Fma(half, Erf(x * Set(0.707106781f)), half);
  }
  static Float GeluErfGradient(Float x) {
    const Float density = Set(0.398942280f) * Exp(Set(-0.5f) * x * x);
    return Fma(x, density, Fma(Set(0.5f), Erf(x * Set(0.707106781f)), Set(0.5f)));
  }

 private:
  static constexpr float kLog2E = 1.44269504088896341f;
  static constexpr float kLargeAngle = 65536.0f;  // the three-constant reduction is good to here

  static void ReduceLargeLanes(Float x, Float* r, Int* quadrant) {
    float xs[S::kLanes], rs[S::kLanes];
    int32_t quadrants[S::kLanes];
    S::Store(xs, x);
    S::Store(rs, *r);
    S::StoreInt(quadrants, *quadrant);
    for (int lane = 0; lane < S::kLanes; ++lane) {
      if (!(xs[lane] <= kLargeAngle && xs[lane] >= -kLargeAngle)) {
        rs[lane] = ReduceLargeAngle(xs[lane], &quadrants[lane]);
      }
    }
    *r = S::Load(rs);
    *quadrant = S::LoadInt(quadrants);
  }
};

}  // namespace weft::kernels
