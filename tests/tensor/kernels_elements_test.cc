// Elementwise kernels, sums and optimisers: the bits of the plain loops at every level and thread
// count.
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "tensor/kernels.h"
#include "tensor/reference.h"
#include "tests/tensor/kernels_testing.h"

namespace weft {
namespace {

constexpr Unary kUnary[] = {
    Unary::kNegate, Unary::kExp,  Unary::kLog,        Unary::kSqrt, Unary::kSquare,   Unary::kAbs,
    Unary::kTanh,   Unary::kRelu, Unary::kSigmoid,    Unary::kElu,  Unary::kSoftplus, Unary::kGelu,
    Unary::kSilu,   Unary::kSin,  Unary::kReciprocal, Unary::kCos,  Unary::kGeluErf};
constexpr Binary kBinary[] = {Binary::kAdd,    Binary::kSubtract, Binary::kMultiply,
                              Binary::kDivide, Binary::kMinimum,  Binary::kMaximum};
constexpr Broadcasting kBroadcasts[] = {Broadcasting::kNone, Broadcasting::kScalar,
                                        Broadcasting::kRow, Broadcasting::kColumn};
constexpr int64_t kCounts[] = {0, 1, 7, 8, 15, 16, 17, 33, 100, 5000, 70001};

// Ordinary numbers of many sizes with the special ones strewn in.
std::vector<float> Mixed(int64_t count, uint64_t seed) {
  using Limits = std::numeric_limits<float>;
  const float specials[] = {0.0f,    -0.0f,         INFINITY, -INFINITY, NAN,  Limits::denorm_min(),
                            -1e-40f, 1e-38f,        1e30f,    -1e30f,    5e5f, 88.8f,
                            -103.5f, Limits::max(), 1.0f,     -1.0f,     0.5f, 1e-4f};
  Numbers numbers(seed);
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) {
    values[i] = i % 5 == 3 ? specials[(i / 5) % std::size(specials)]
                           : numbers.Next(i % 2 == 0 ? 3.0f : 60.0f);
  }
  return values;
}

TEST(Unary, ForwardAndGradientHaveTheBitsOfTheReference) {
  for (const Unary op : kUnary) {
    for (const int64_t count : kCounts) {
      const auto x = Mixed(count, 1), d_y = Numbers(2).Vector(count);
      const auto before = Numbers(3).Vector(count);
      std::vector<float> want_y(count), want_d = before, want_sum = before;
      reference::UnaryForward(op, count, x.data(), want_y.data());
      reference::UnaryGradient(op, count, x.data(), want_y.data(), d_y.data(), false,
                               want_d.data());
      reference::UnaryGradient(op, count, x.data(), want_y.data(), d_y.data(), true,
                               want_sum.data());
      ForEveryContext([&](const Context& context) {
        std::vector<float> y(count, NAN), d(count, NAN), sum = before;
        kernels::UnaryForward(context, op, count, x.data(), y.data());
        kernels::UnaryGradient(context, op, count, x.data(), y.data(), d_y.data(), false, d.data());
        kernels::UnaryGradient(context, op, count, x.data(), y.data(), d_y.data(), true,
                               sum.data());
        EXPECT_TRUE(SameBits(y, want_y)) << static_cast<int>(op) << " of " << count;
        EXPECT_TRUE(SameBits(d, want_d)) << static_cast<int>(op) << " of " << count;
        EXPECT_TRUE(SameBits(sum, want_sum)) << static_cast<int>(op) << " of " << count;
      });
    }
  }
}

TEST(Unary, MayWriteOverItsInput) {
  ForEveryContext([&](const Context& context) {
    const auto x = Mixed(5000, 4);
    std::vector<float> want(x.size()), got = x;
    kernels::UnaryForward(context, Unary::kTanh, 5000, x.data(), want.data());
    kernels::UnaryForward(context, Unary::kTanh, 5000, got.data(), got.data());
    EXPECT_TRUE(SameBits(got, want));
  });
}

class BinaryShapes : public testing::TestWithParam<std::pair<int64_t, int64_t>> {};
INSTANTIATE_TEST_SUITE_P(Shapes, BinaryShapes,
                         testing::Values(std::pair(0, 3), std::pair(1, 1), std::pair(1, 40),
                                         std::pair(40, 1), std::pair(5, 6), std::pair(3, 17),
                                         std::pair(300, 64), std::pair(600, 130)));

TEST_P(BinaryShapes, ForwardAndGradientsHaveTheBitsOfTheReference) {
  const auto [rows, columns] = GetParam();
  const int64_t count = rows * columns;
  for (const Broadcasting broadcast : kBroadcasts) {
    const int64_t partners = broadcast == Broadcasting::kNone     ? count
                             : broadcast == Broadcasting::kScalar ? 1
                             : broadcast == Broadcasting::kRow    ? columns
                                                                  : rows;
    Numbers numbers(5);
    auto a = numbers.Vector(count), b = numbers.Vector(partners);
    for (int64_t i = 0; i < count; i += 3) a[i] = std::round(a[i] * 2) / 2;
    for (int64_t i = 0; i < partners; i += 2) b[i] = std::round(b[i] * 2) / 2;  // ties with a
    const auto d_y = numbers.Vector(count), a_before = numbers.Vector(count);
    const auto b_before = numbers.Vector(partners);
    for (const Binary op : kBinary) {
      for (const bool accumulate : {false, true}) {
        std::vector<float> want(count), want_a = a_before, want_b = b_before;
        reference::BinaryForward(op, broadcast, rows, columns, a.data(), b.data(), want.data());
        reference::BinaryGradient(op, broadcast, rows, columns, a.data(), b.data(), d_y.data(),
                                  accumulate, want_a.data(), accumulate, want_b.data());
        ForEveryContext([&](const Context& context) {
          SCOPED_TRACE(testing::Message() << "op " << static_cast<int>(op) << ", broadcast "
                                          << static_cast<int>(broadcast) << ", " << accumulate);
          std::vector<float> y(count, NAN), got_a = a_before, got_b = b_before;
          kernels::BinaryForward(context, op, broadcast, rows, columns, a.data(), b.data(),
                                 y.data());
          kernels::BinaryGradient(context, op, broadcast, rows, columns, a.data(), b.data(),
                                  d_y.data(), accumulate, got_a.data(), accumulate, got_b.data());
          EXPECT_TRUE(SameBits(y, want));
          EXPECT_TRUE(SameBits(got_a, want_a));
          EXPECT_TRUE(SameBits(got_b, want_b));
          std::vector<float> alone = b_before;
          kernels::BinaryGradient(context, op, broadcast, rows, columns, a.data(), b.data(),
                                  d_y.data(), false, nullptr, accumulate, alone.data());
          EXPECT_TRUE(SameBits(alone, want_b));
        });
      }
    }
  }
}

TEST(Binary, MinimumAndMaximumKeepNotANumberFromEitherSide) {
  const float a[] = {NAN, 1.0f, 1.0f}, b[] = {1.0f, NAN, 2.0f};
  ForEveryContext([&](const Context& context) {
    float low[3], high[3];
    kernels::BinaryForward(context, Binary::kMinimum, Broadcasting::kNone, 1, 3, a, b, low);
    kernels::BinaryForward(context, Binary::kMaximum, Broadcasting::kNone, 1, 3, a, b, high);
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(std::isnan(low[i]) && std::isnan(high[i]));
    EXPECT_EQ(low[2], 1.0f);
    EXPECT_EQ(high[2], 2.0f);
  });
}

TEST(Elements, AffineClampSelectAndActivationGradientHaveTheBitsOfTheReference) {
  for (const int64_t count : kCounts) {
    const auto x = Mixed(count, 6), d_y = Numbers(7).Vector(count);
    const auto before = Numbers(8).Vector(count);
    std::vector<uint8_t> mask(count);
    for (int64_t i = 0; i < count; ++i) mask[i] = static_cast<uint8_t>(i * 7 % 3);
    std::vector<float> affine(count), clamp(count), slope = before, select(count), tanh(count);
    reference::Affine(count, 1.7f, -0.3f, x.data(), affine.data());
    reference::Clamp(count, -0.9f, 1.0f, x.data(), clamp.data());
    reference::ClampGradient(count, -0.9f, 1.0f, x.data(), d_y.data(), true, slope.data());
    reference::Select(count, mask.data(), x.data(), d_y.data(), select.data());
    reference::ActivationGradient(count, Activation::kTanh, x.data(), d_y.data(), tanh.data());
    ForEveryContext([&](const Context& context) {
      std::vector<float> y(count, NAN);
      kernels::Affine(context, count, 1.7f, -0.3f, x.data(), y.data());
      EXPECT_TRUE(SameBits(y, affine));
      kernels::Clamp(context, count, -0.9f, 1.0f, x.data(), y.data());
      EXPECT_TRUE(SameBits(y, clamp));
      kernels::Select(context, count, mask.data(), x.data(), d_y.data(), y.data());
      EXPECT_TRUE(SameBits(y, select));
      kernels::ActivationGradient(context, count, Activation::kTanh, x.data(), d_y.data(),
                                  y.data());
      EXPECT_TRUE(SameBits(y, tanh));
      y = before;
      kernels::ClampGradient(context, count, -0.9f, 1.0f, x.data(), d_y.data(), true, y.data());
      EXPECT_TRUE(SameBits(y, slope));
    });
  }
}

TEST(Elements, ClampKeepsNotANumberAndPassesGradientAtTheBounds) {
  const float x[] = {NAN, -2.0f, -1.0f, 0.5f, 1.0f, 2.0f}, ones[] = {1, 1, 1, 1, 1, 1};
  float y[6], d[6];
  kernels::Clamp({}, 6, -1, 1, x, y);
  kernels::ClampGradient({}, 6, -1, 1, x, ones, false, d);
  EXPECT_TRUE(std::isnan(y[0]));
  const float want_y[] = {0, -1, -1, 0.5f, 1, 1}, want_d[] = {0, 0, 1, 1, 1, 0};
  for (int i = 1; i < 6; ++i) EXPECT_EQ(y[i], want_y[i]);
  for (int i = 1; i < 6; ++i) EXPECT_EQ(d[i], want_d[i]);
}

TEST(Sums, HaveTheBitsOfTheTree) {
  for (const int64_t count : {0, 1, 5, 16, 17, 1024, 1025, 2048, 3100, 7168, 70001, 300000}) {
    const auto x = Numbers(9).Vector(count);
    const float want = reference::SumAll(count, x.data());
    const double want_squares = reference::SumSquares(count, x.data());
    double sum = 0, squares = 0;
    for (const float v : x) {
      sum += v;
      squares += static_cast<double>(v) * v;
    }
    EXPECT_NEAR(want, sum, 1e-5 * std::sqrt(static_cast<double>(count + 1)));
    EXPECT_NEAR(want_squares, squares, 1e-12 * (squares + 1));
    ForEveryContext([&](const Context& context) {
      EXPECT_EQ(kernels::SumAll(context, count, x.data()), want) << count;
      EXPECT_EQ(kernels::SumSquares(context, count, x.data()), want_squares) << count;
    });
  }
}

TEST(Sums, OfRowsAndColumnsHaveTheBitsOfTheReference) {
  for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
           {0, 4}, {1, 1}, {3, 6}, {5, 1500}, {257, 70}, {600, 200}, {1000, 3}}) {
    Numbers numbers(10);
    const auto x = numbers.Vector(rows * columns), before = numbers.Vector(columns);
    std::vector<float> want_last(rows), want(columns), want_added = before;
    reference::SumLast(rows, columns, x.data(), want_last.data());
    reference::SumRows(rows, columns, x.data(), false, want.data());
    reference::SumRows(rows, columns, x.data(), true, want_added.data());
    ForEveryContext([&](const Context& context) {
      std::vector<float> last(rows, NAN), sums(columns, NAN), added = before;
      kernels::SumLast(context, rows, columns, x.data(), last.data());
      kernels::SumRows(context, rows, columns, x.data(), false, sums.data());
      kernels::SumRows(context, rows, columns, x.data(), true, added.data());
      EXPECT_TRUE(SameBits(last, want_last)) << rows << "x" << columns;
      EXPECT_TRUE(SameBits(sums, want)) << rows << "x" << columns;
      EXPECT_TRUE(SameBits(added, want_added)) << rows << "x" << columns;
    });
  }
}

TEST(FirstNonFinite, FindsTheLowestIndex) {
  for (const int64_t count : {1, 20, 1030, 200000}) {
    std::vector<float> x(count, -std::numeric_limits<float>::max());
    ForEveryContext([&](const Context& context) {
      EXPECT_EQ(kernels::FirstNonFinite(context, count, x.data()), -1);
    });
    for (const int64_t place : {count - 1, count / 2, count / 3, int64_t{0}}) {
      x[place] = place % 2 == 0 ? NAN : -INFINITY;
      ForEveryContext([&](const Context& context) {
        EXPECT_EQ(kernels::FirstNonFinite(context, count, x.data()), place);
      });
    }
  }
}

class OptimiserCounts : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Counts, OptimiserCounts, testing::Values(1, 17, 1000, 60000));

// Three steps of a kernel, given as step(context, parameter, state1, state2, n); null context: the
// reference.
template <class Step>
void ExpectEqualSteps(int64_t count, Step step) {
  Numbers numbers(11);
  const auto start = numbers.Vector(count);
  const std::vector<float> zeros(count);
  std::vector<float> want_p = start, want_1 = zeros, want_2 = zeros;
  for (int64_t n = 1; n <= 3; ++n) step(nullptr, want_p.data(), want_1.data(), want_2.data(), n);
  EXPECT_FALSE(SameBits(want_p, start));
  ForEveryContext([&](const Context& context) {
    std::vector<float> p = start, first = zeros, second = zeros;
    for (int64_t n = 1; n <= 3; ++n) step(&context, p.data(), first.data(), second.data(), n);
    EXPECT_TRUE(SameBits(p, want_p));
    EXPECT_TRUE(SameBits(first, want_1));
    EXPECT_TRUE(SameBits(second, want_2));
  });
}

TEST_P(OptimiserCounts, AdamHasTheBitsOfTheReference) {
  const int64_t count = GetParam();
  const auto g = Numbers(12).Vector(count);
  ExpectEqualSteps(count, [&](const Context* context, float* p, float* m, float* v, int64_t n) {
    const kernels::AdamStep step{.learning_rate = 3e-4,
                                 .beta1 = 0.9,
                                 .beta2 = 0.999,
                                 .epsilon = 1e-5,
                                 .weight_decay = 0.01,
                                 .beta1_power = kernels::Power(0.9, n),
                                 .beta2_power = kernels::Power(0.999, n),
                                 .gradient_scale = 0.7};
    context ? kernels::Adam(*context, count, step, g.data(), p, m, v)
            : reference::Adam(count, step, g.data(), p, m, v);
  });
}

TEST_P(OptimiserCounts, RmsPropHasTheBitsOfTheReference) {
  const int64_t count = GetParam();
  const auto g = Numbers(13).Vector(count);
  for (const double momentum : {0.0, 0.9}) {
    for (const bool inside : {false, true}) {
      ExpectEqualSteps(count, [&](const Context* context, float* p, float* v, float* m, int64_t) {
        const kernels::RmsPropStep step{.learning_rate = 7e-4,
                                        .alpha = 0.99,
                                        .epsilon = 1e-5,
                                        .momentum = momentum,
                                        .weight_decay = 0.01,
                                        .gradient_scale = 0.5,
                                        .epsilon_inside = inside};
        float* buffer = momentum == 0 ? nullptr : m;
        context ? kernels::RmsProp(*context, count, step, g.data(), p, v, buffer)
                : reference::RmsProp(count, step, g.data(), p, v, buffer);
      });
    }
  }
}

TEST_P(OptimiserCounts, SgdAndLerpHaveTheBitsOfTheReference) {
  const int64_t count = GetParam();
  const auto g = Numbers(14).Vector(count);
  for (const double momentum : {0.0, 0.9}) {
    for (const bool nesterov : {false, true}) {
      ExpectEqualSteps(count,
                       [&](const Context* context, float* p, float* m, float* target, int64_t n) {
                         const kernels::SgdStep step{.learning_rate = 0.1,
                                                     .momentum = momentum,
                                                     .dampening = 0.2,
                                                     .weight_decay = 0.01,
                                                     .gradient_scale = 1,
                                                     .nesterov = nesterov,
                                                     .first = n == 1};
                         float* buffer = momentum == 0 ? nullptr : m;
                         if (context) {
                           kernels::Sgd(*context, count, step, g.data(), p, buffer);
                           kernels::Lerp(*context, count, 0.005f, p, target);
                         } else {
                           reference::Sgd(count, step, g.data(), p, buffer);
                           reference::Lerp(count, 0.005f, p, target);
                         }
                       });
    }
  }
}

// Rounded to nearest, denormal moments would stay where 0.9 of them is themselves.
TEST(Adam, MomentsOfAWeightWithoutGradientEndAtZero) {
  ForEveryContext([](const Context& context) {
    std::vector<float> p(100, 0.5f), m(100, 1e-30f), v(100, 1e-30f);
    const std::vector<float> gradient(100);
    for (int64_t n = 1; n <= 300; ++n) {
      kernels::Adam(context, 100,
                    {.learning_rate = 0.01,
                     .beta1 = 0.9,
                     .beta2 = 0.5,
                     .epsilon = 1e-8,
                     .weight_decay = 0,
                     .beta1_power = kernels::Power(0.9, n),
                     .beta2_power = kernels::Power(0.5, n)},
                    gradient.data(), p.data(), m.data(), v.data());
    }
    EXPECT_THAT(m, testing::Each(0.0f));
    EXPECT_THAT(v, testing::Each(0.0f));
    volatile float smallest = std::numeric_limits<float>::min();
    EXPECT_GT(smallest / 2, 0) << "the caller's own arithmetic goes on as before";
  });
}

// Kingma and Ba 2015, algorithm 1, in double.
TEST(Adam, FollowsThePaper) {
  float p = 0.5f, m = 0, v = 0;
  double want = 0.5, want_m = 0, want_v = 0;
  for (int64_t n = 1; n <= 50; ++n) {
    const double g = std::sin(static_cast<double>(n));
    const auto gradient = static_cast<float>(g);
    kernels::Adam({}, 1,
                  {.learning_rate = 0.01,
                   .beta1 = 0.9,
                   .beta2 = 0.999,
                   .epsilon = 1e-8,
                   .weight_decay = 0,
                   .beta1_power = kernels::Power(0.9, n),
                   .beta2_power = kernels::Power(0.999, n)},
                  &gradient, &p, &m, &v);
    want_m = 0.9 * want_m + 0.1 * g;
    want_v = 0.999 * want_v + 0.001 * g * g;
    const double m_hat = want_m / (1 - std::pow(0.9, n)), v_hat = want_v / (1 - std::pow(0.999, n));
    want -= 0.01 * m_hat / (std::sqrt(v_hat) + 1e-8);
    EXPECT_NEAR(p, want, 1e-6) << n;
  }
}

}  // namespace
}  // namespace weft
