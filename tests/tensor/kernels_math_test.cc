// Transcendental functions against the C library in double, and every derivative against
// differences in double.
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "tensor/kernels.h"
#include "tests/tensor/kernels_testing.h"

namespace weft {
namespace {

// Distance of `got` from the real number in units of the spacing of floats there.
double Ulps(float got, double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : INFINITY;
  const auto rounded = static_cast<float>(want);
  if (std::isinf(rounded) || got == rounded) return got == rounded ? 0 : INFINITY;
  const double magnitude = std::max(std::abs(want), 0x1p-126);
  return std::abs(got - want) / std::ldexp(1.0, std::ilogb(magnitude) - 23);
}

double Softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}
double Sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
double Gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double Elu(double x) {
  return x > 0 ? x : std::expm1(x);
}

struct Case {
  const char* name;
  Unary op;
  double (*exact)(double);
  double ulps;       // largest error allowed for |x| in [1e-30, range]
  double low, high;  // arguments tried
};

const Case kCases[] = {
    {"exp", Unary::kExp, [](double x) { return std::exp(x); }, 1.1, -110, 95},
    {"log", Unary::kLog, [](double x) { return std::log(x); }, 1, 1e-45, 3e38},
    {"tanh", Unary::kTanh, [](double x) { return std::tanh(x); }, 2, -12, 12},
    {"sigmoid", Unary::kSigmoid, Sigmoid, 2.1, -95, 95},
    {"softplus", Unary::kSoftplus, Softplus, 1.6, -95, 95},
    {"sin", Unary::kSin, [](double x) { return std::sin(x); }, 1.6, -1e5, 1e5},
    {"cos", Unary::kCos, [](double x) { return std::cos(x); }, 1.6, -1e5, 1e5},
    {"sqrt", Unary::kSqrt, [](double x) { return std::sqrt(x); }, 0.501, 0, 3e38},
    {"reciprocal", Unary::kReciprocal, [](double x) { return 1 / x; }, 0.501, -1e30, 1e30},
    {"square", Unary::kSquare, [](double x) { return x * x; }, 0.501, -1e18, 1e18},
    {"silu", Unary::kSilu, [](double x) { return x * Sigmoid(x); }, 3.5, -80, 80},
    {"elu", Unary::kElu, Elu, 1.1, -40, 40},
    {"gelu", Unary::kGelu, Gelu, 4, -1, 20},
    {"gelu_erf", Unary::kGeluErf,
     [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }, 4, -1, 20},
};

class MathFunctions : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Functions, MathFunctions, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

// Every exponent from 1e-30 up, and an even sweep, on both sides of zero.
std::vector<float> Arguments(double low, double high) {
  std::vector<float> x;
  Numbers numbers(1);
  for (double magnitude = 1e-30; magnitude < std::max(high, -low); magnitude *= 1.03) {
    for (const double sign : {-1.0, 1.0}) {
      const double v = sign * magnitude * (1 + 0.01 * numbers.Next());
      if (v >= low && v <= high) x.push_back(static_cast<float>(v));
    }
  }
  const double sweep_low = std::max(low, -200.0), sweep_high = std::min(high, 200.0);
  for (int i = 0; i < 40000; ++i) {
    x.push_back(static_cast<float>(sweep_low + (sweep_high - sweep_low) * (i + 0.3) / 40000));
  }
  return x;
}

TEST_P(MathFunctions, AreWithinTheirErrorAndEqualAtEveryLevel) {
  const Case& c = GetParam();
  const std::vector<float> x = Arguments(c.low, c.high);
  const auto count = static_cast<int64_t>(x.size());
  std::vector<float> first;
  for (const Isa isa : IsaLevels()) {
    std::vector<float> y(x.size());
    kernels::UnaryForward({.isa = isa}, c.op, count, x.data(), y.data());
    if (first.empty()) {
      first = y;
      double worst = 0;
      float where = 0;
      for (int64_t i = 0; i < count; ++i) {
        const double ulps = Ulps(y[i], c.exact(x[i]));
        if (ulps > worst) {
          worst = ulps;
          where = x[i];
        }
      }
      EXPECT_LE(worst, c.ulps) << c.name << "(" << where << ")";
      RecordProperty("ulps", std::to_string(worst));
    }
    EXPECT_TRUE(SameBits(y, first)) << c.name << " on " << Name(isa);
  }
}

TEST_P(MathFunctions, HaveTheSlopeOfTheirDifferences) {
  const Case& c = GetParam();
  for (const double x : {-2.3, -1.0, -0.4, -0.01, 0.02, 0.3, 0.9, 1.7, 4.0}) {
    if (x < c.low) continue;
    const double h = 1e-5;
    const double slope = (c.exact(x + h) - c.exact(x - h)) / (2 * h);
    const auto argument = static_cast<float>(x);
    const float d_y = 1.5f;
    float y = 0, d_x = 0;
    kernels::UnaryForward({}, c.op, 1, &argument, &y);
    kernels::UnaryGradient({}, c.op, 1, &argument, &y, &d_y, false, &d_x);
    EXPECT_NEAR(d_x, 1.5 * slope, 1e-5 * (1 + std::abs(slope))) << c.name << "'(" << x << ")";
  }
}

struct Special {
  Unary op;
  float x, want;
};

TEST(MathFunctions, KeepTheSpecialValues) {
  constexpr float kInfinity = INFINITY, kNan = NAN;
  const Special specials[] = {
      {Unary::kExp, -kInfinity, 0},
      {Unary::kExp, kInfinity, kInfinity},
      {Unary::kExp, 0, 1},
      {Unary::kExp, -0.0f, 1},
      {Unary::kExp, 89, kInfinity},
      {Unary::kExp, -104, 0},
      {Unary::kLog, 0, -kInfinity},
      {Unary::kLog, -0.0f, -kInfinity},
      {Unary::kLog, 1, 0},
      {Unary::kLog, kInfinity, kInfinity},
      {Unary::kLog, -1, kNan},
      {Unary::kLog, -kInfinity, kNan},
      {Unary::kTanh, 0, 0},
      {Unary::kTanh, -0.0f, -0.0f},
      {Unary::kTanh, kInfinity, 1},
      {Unary::kTanh, -kInfinity, -1},
      {Unary::kTanh, 1e-40f, 1e-40f},
      {Unary::kSigmoid, 0, 0.5f},
      {Unary::kSigmoid, kInfinity, 1},
      {Unary::kSigmoid, -kInfinity, 0},
      {Unary::kSoftplus, 1000, 1000},
      {Unary::kSoftplus, -kInfinity, 0},
      {Unary::kSoftplus, kInfinity, kInfinity},
      {Unary::kSin, 0, 0},
      {Unary::kSin, -0.0f, -0.0f},
      {Unary::kSin, kInfinity, kNan},
      {Unary::kCos, 0, 1},
      {Unary::kCos, -kInfinity, kNan},
      {Unary::kSqrt, -1, kNan},
      {Unary::kRelu, -kInfinity, 0},
      {Unary::kRelu, kInfinity, kInfinity},
      {Unary::kElu, -kInfinity, -1},
      {Unary::kReciprocal, -0.0f, -kInfinity},
  };
  for (const Isa isa : IsaLevels()) {
    for (const Special& special : specials) {
      float y = 7;
      kernels::UnaryForward({.isa = isa}, special.op, 1, &special.x, &y);
      EXPECT_TRUE(SameBits({y}, {special.want}))
          << static_cast<int>(special.op) << "(" << special.x << ") on " << Name(isa);
    }
    for (int op = 0; op <= static_cast<int>(Unary::kCos); ++op) {
      float y = 7;
      kernels::UnaryForward({.isa = isa}, static_cast<Unary>(op), 1, &kNan, &y);
      EXPECT_TRUE(std::isnan(y)) << op << "(NaN) on " << Name(isa);
    }
  }
}

TEST(MathFunctions, KinksHaveTheSlopeOfTorch) {
  const float zero = 0, one = 1;
  float d = 7;
  kernels::UnaryGradient({}, Unary::kRelu, 1, &zero, &zero, &one, false, &d);
  EXPECT_EQ(d, 0);
  kernels::UnaryGradient({}, Unary::kAbs, 1, &zero, &zero, &one, false, &d);
  EXPECT_EQ(d, 0);
}

TEST(MathFunctions, AnglesOfAnySizeAreReduced) {
  Numbers numbers(2);
  std::vector<float> x;
  for (int exponent = 14; exponent < 128; ++exponent) {
    for (int i = 0; i < 20; ++i) x.push_back(std::ldexp(1 + 0.99f * numbers.Next(), exponent));
  }
  // The float closest to a multiple of pi/2 (Muller 2006, table 11.1 for single precision):
  // 16367173 * 2^72.
  x.push_back(std::ldexp(16367173.0f, 72));
  const auto count = static_cast<int64_t>(x.size());
  for (const Isa isa : IsaLevels()) {
    std::vector<float> sine(x.size()), cosine(x.size());
    kernels::UnaryForward({.isa = isa}, Unary::kSin, count, x.data(), sine.data());
    kernels::UnaryForward({.isa = isa}, Unary::kCos, count, x.data(), cosine.data());
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_LE(Ulps(sine[i], std::sin(static_cast<double>(x[i]))), 2) << "sin " << x[i];
      EXPECT_LE(Ulps(cosine[i], std::cos(static_cast<double>(x[i]))), 2) << "cos " << x[i];
    }
  }
}

}  // namespace
}  // namespace weft
