// Products in bf16 against their definition, one element at a time in the machine's order,
// denormals flushed by hand.
#include "tensor/kernels_bf16.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "tensor/kernels.h"
#include "tests/tensor/kernels_testing.h"

namespace weft {
namespace {

float Flush(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}
float Fused(BFloat16 a, BFloat16 b, float sum) {
  return Flush(std::fma(Flush(ToFloat(a)), Flush(ToFloat(b)), sum));
}

// The sum over k of a(k) b(k), of an even number of elements.
template <class A, class B>
float SumOfProducts(int64_t count, A&& a, B&& b) {
  float sum = 0;
  if (kernels::Bf16SumOrder() == kernels::SumOrder::kPairs) {
    for (int64_t k = 0; k < count; k += 2) {
      sum = Fused(a(k + 1), b(k + 1), sum);
      sum = Fused(a(k), b(k), sum);
    }
    return sum;
  }
  for (int64_t block = 0; block < count; block += 32) {
    float even = 0, odd = 0;
    for (int64_t k = block; k < std::min(count, block + 32); k += 2) {
      even = Fused(a(k), b(k), even);
      odd = Fused(a(k + 1), b(k + 1), odd);
    }
    sum = Flush(sum + Flush(even + odd));
  }
  return sum;
}

std::vector<BFloat16> Rounded(const std::vector<float>& x) {
  std::vector<BFloat16> y;
  for (const float value : x) y.push_back(ToBFloat16(value));
  return y;
}

struct ProductShape {
  int64_t rows, in, out;
};
class Bf16Products : public testing::TestWithParam<ProductShape> {};
INSTANTIATE_TEST_SUITE_P(Shapes, Bf16Products,
                         testing::Values(ProductShape{1, 2, 2}, ProductShape{1, 64, 100},
                                         ProductShape{3, 6, 48}, ProductShape{7, 64, 64},
                                         ProductShape{13, 578, 30}, ProductShape{65, 20, 130},
                                         ProductShape{257, 12, 70}, ProductShape{600, 34, 112},
                                         ProductShape{40, 1700, 100}, ProductShape{20, 8800, 34},
                                         ProductShape{515, 104, 600}));

TEST_P(Bf16Products, ForwardIsTheSumOfItsDefinition) {
  const auto [rows, in, out] = GetParam();
  Numbers numbers(3);
  const auto x = Rounded(numbers.Vector(rows * in));
  const auto w = numbers.Vector(in * out), bias = numbers.Vector(out);
  std::vector<float> panels(PanelElements(in, out)), want(rows * out);
  kernels::PackPanels(in, out, w.data(), panels.data());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t n = 0; n < out; ++n) {
      want[r * out + n] = SumOfProducts(
                              in, [&](int64_t k) { return x[r * in + k]; },
                              [&](int64_t k) { return ToBFloat16(w[k * out + n]); }) +
                          bias[n];
    }
  }
  ForEveryContext([&](const Context& context) {
    std::vector<BFloat16> packed(PanelElements(in, out));
    kernels::PackPairs(context, in, out, panels.data(), packed.data());
    std::vector<float> got(rows * out, NAN);
    kernels::DenseBf16(context, rows, in, out, x.data(), packed.data(), bias.data(), 0, got.data());
    EXPECT_TRUE(SameBits(got, want));
  });
}

TEST_P(Bf16Products, TransposedPanelsGiveTheInputGradient) {
  const auto [rows, in, out] = GetParam();
  Numbers numbers(4);
  const auto d_z = Rounded(numbers.Vector(rows * out));
  const auto w = numbers.Vector(in * out);
  std::vector<float> panels(PanelElements(in, out)), want(rows * in);
  kernels::PackPanels(in, out, w.data(), panels.data());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < in; ++k) {
      want[r * in + k] = SumOfProducts(
          out, [&](int64_t n) { return d_z[r * out + n]; },
          [&](int64_t n) { return ToBFloat16(w[k * out + n]); });
    }
  }
  ForEveryContext([&](const Context& context) {
    std::vector<BFloat16> packed(PanelElements(in, out)), turned(PanelElements(out, in));
    kernels::PackPairs(context, in, out, panels.data(), packed.data());
    kernels::TransposePairs(context, in, out, packed.data(), turned.data());
    std::vector<float> got(rows * in, NAN);
    kernels::DenseBf16(context, rows, out, in, d_z.data(), turned.data(), nullptr, 0, got.data());
    EXPECT_TRUE(SameBits(got, want));
  });
}

TEST_P(Bf16Products, WeightGradientSumsBlocksOf256Rows) {
  const auto [rows, in, out] = GetParam();
  Numbers numbers(5);
  const auto x = Rounded(numbers.Vector(rows * in)), d_z = Rounded(numbers.Vector(rows * out));
  std::vector<float> want(in * out);
  for (int64_t k = 0; k < in; ++k) {
    for (int64_t n = 0; n < out; ++n) {
      float total = 0;
      for (int64_t block = 0; block < rows; block += 256) {
        const int64_t count = (std::min<int64_t>(rows - block, 256) + 1) / 2 * 2;
        const auto of = [&](const std::vector<BFloat16>& m, int64_t width, int64_t c) {
          return [&m, width, c, block, rows = rows](int64_t r) {
            return block + r < rows ? m[(block + r) * width + c] : BFloat16{};
          };
        };
        const float sum = SumOfProducts(count, of(x, in, k), of(d_z, out, n));
        total = block == 0 ? sum : total + sum;
      }
      want[k * out + n] = total;
    }
  }
  ForEveryContext([&](const Context& context) {
    std::vector<BFloat16> x_pairs((rows + 1) / 2 * 2 * in), d_z_pairs((rows + 1) / 2 * 2 * out);
    kernels::InterleaveRows(context, rows, in, x.data(), x_pairs.data());
    kernels::InterleaveRows(context, rows, out, d_z.data(), d_z_pairs.data());
    std::vector<float> panels(PanelElements(in, out), NAN), got(in * out);
    kernels::DenseBf16WeightGradient(context, rows, in, out, x_pairs.data(), d_z_pairs.data(),
                                     false, panels.data());
    kernels::UnpackPanels(in, out, panels.data(), got.data());
    EXPECT_TRUE(SameBits(got, want));
  });
}

TEST(Bf16, SumsOfRowsAndNormsAreThoseOfTheWidenedNumbers) {
  constexpr int64_t kRows = 300, kColumns = 75;
  Numbers numbers(6);
  const auto wide = numbers.Vector(kRows * kColumns), gamma = numbers.Vector(kColumns);
  const auto x = Rounded(wide);
  std::vector<float> widened;
  for (const BFloat16 value : x) widened.push_back(ToFloat(value));
  ForEveryContext([&](const Context& context) {
    std::vector<float> want = gamma, got = gamma;
    kernels::SumRows(context, kRows, kColumns, widened.data(), true, want.data());
    kernels::SumRows(context, kRows, kColumns, x.data(), true, got.data());
    EXPECT_TRUE(SameBits(got, want));

    std::vector<float> normal(wide.size()), mean(kRows), rstd(kRows);
    std::vector<BFloat16> rounded(wide.size());
    for (const kernels::Output y :
         {kernels::Output{normal.data(), false}, {rounded.data(), true}}) {
      kernels::LayerNorm(context, kRows, kColumns, wide.data(), gamma.data(), gamma.data(), 1e-5f,
                         y, mean.data(), rstd.data());
    }
    for (size_t i = 0; i < normal.size(); ++i) {
      ASSERT_EQ(ToFloat(rounded[i]), ToFloat(ToBFloat16(normal[i]))) << i;
    }
  });
}

TEST(Bf16, RoundsToTheNearestAsTheScalarDoes) {
  Numbers numbers(6);
  auto x = numbers.Vector(1000);
  x[3] = NAN;
  x[5] = INFINITY;
  x[6] = 1.00390625f;  // half way, to even: 1
  x[7] = 3.3e38f * 1.02f;
  x[8] = 1e-40f;
  const auto want = Rounded(x);
  ForEveryContext([&](const Context& context) {
    std::vector<BFloat16> got(x.size());
    kernels::Round(context, std::ssize(x), x.data(), got.data());
    std::vector<float> wide(x.size());
    kernels::Widen(context, std::ssize(x), got.data(), wide.data());
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(got[i].bits, want[i].bits) << x[i];
      EXPECT_EQ(std::bit_cast<uint32_t>(wide[i]), uint32_t{want[i].bits} << 16);
    }
  });
}

// Denormal products and sums are zero whichever way they are made; the wide sums of f32 are not.
TEST(Bf16, DenormalsAreFlushed) {
  const std::vector<BFloat16> x = Rounded({1e-30f, 1e-39f});
  std::vector<float> panels(PanelElements(2, 1));
  const std::vector<float> w = {1e-9f, 1.0f};
  kernels::PackPanels(2, 1, w.data(), panels.data());
  ForEveryContext([&](const Context& context) {
    std::vector<BFloat16> packed(panels.size());
    kernels::PackPairs(context, 2, 1, panels.data(), packed.data());
    float y = NAN;
    kernels::DenseBf16(context, 1, 2, 1, x.data(), packed.data(), nullptr, 0, &y);
    EXPECT_EQ(y, 0.0f);
  });
}

}  // namespace
}  // namespace weft
