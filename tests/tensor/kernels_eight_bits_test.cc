// Rows rounded to 8 bits times quantised weights, against the definition in double precision.
#include "tensor/kernels_eight_bits.h"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "tests/tensor/kernels_testing.h"
#include "tests/tensor/quantised_testing.h"

namespace weft {
namespace {

class EightBitProducts : public testing::TestWithParam<CodeForm> {};
INSTANTIATE_TEST_SUITE_P(Forms, EightBitProducts, testing::ValuesIn(kForms));

std::vector<BFloat16> Rows(int64_t rows, int64_t in, uint64_t seed) {
  std::vector<BFloat16> x;
  Numbers numbers(seed);
  for (const float value : numbers.Vector(rows * in)) x.push_back(ToBFloat16(value));
  return x;
}

std::vector<float> Product(const Context& context, const Quantised& w, int64_t rows,
                           const std::vector<BFloat16>& x, const float* addend) {
  std::vector<float> y(rows * w.out, NAN);
  kernels::DenseEightBits(context, w.form, rows, w.in, w.out, x.data(), w.bytes.data(), addend, 0,
                          y.data());
  return y;
}

TEST_P(EightBitProducts, AreSumsOfRoundedElements) {
  for (const auto& [in, out] : {std::pair<int64_t, int64_t>{32, 16}, {96, 70}, {576, 192}}) {
    const Quantised w(GetParam(), in, out);
    const auto bias = Numbers(6).Vector(out);
    for (const int64_t rows : {1, 2, 3, 4, 7, 40}) {
      const auto x = Rows(rows, in, 5);
      std::vector<float> first;
      ForEveryContext([&](const Context& context) {
        const std::vector<float> got = Product(context, w, rows, x, bias.data());
        if (first.empty()) first = got;
        EXPECT_TRUE(SameBits(got, first)) << rows << " rows of [" << in << ", " << out << "]";
      });
      for (int64_t r = 0; r < rows; ++r) {
        std::vector<double> rounded(in);
        for (int64_t k = 0; k < in; k += 32) {
          float largest = 0;
          for (int64_t i = k; i < k + 32; ++i) {
            largest = std::max(largest, std::abs(ToFloat(x[r * in + i])));
          }
          for (int64_t i = k; i < k + 32; ++i) {
            const float value = ToFloat(x[r * in + i]);  // in f32, as ties depend on it
            rounded[i] = std::nearbyint(value * (127 / largest)) * (largest / 127.0);
            EXPECT_LE(std::abs(rounded[i] - value), largest / 254 * 1.00001);
          }
        }
        for (int64_t n = 0; n < out; ++n) {
          double want = bias[n], size = std::abs(bias[n]);
          for (int64_t k = 0; k < in; ++k) {
            want += rounded[k] * w.exact[k * out + n];
            size += std::abs(rounded[k] * w.exact[k * out + n]);
          }
          EXPECT_NEAR(first[r * out + n], want, 4e-6 * size) << r << ", " << n;
        }
      }
    }
  }
}

TEST_P(EightBitProducts, DoNotDependOnOtherRows) {
  const Quantised w(GetParam(), 96, 70);
  const auto x = Rows(9, 96, 7);
  ForEveryContext([&](const Context& context) {
    const std::vector<float> all = Product(context, w, 9, x, nullptr);
    for (int64_t r = 0; r < 9; ++r) {
      const std::vector<float> alone =
          Product(context, w, 1, {x.begin() + r * 96, x.begin() + (r + 1) * 96}, nullptr);
      EXPECT_TRUE(SameBits(alone, {all.begin() + r * 70, all.begin() + (r + 1) * 70})) << r;
    }
  });
}

TEST_P(EightBitProducts, OfWhatIsNotFiniteAreNotNumbers) {
  const Quantised w(GetParam(), 96, 70);
  auto x = Rows(4, 96, 8);
  x[40] = ToBFloat16(INFINITY);
  x[96 + 95] = ToBFloat16(NAN);
  for (int64_t k = 0; k < 96; ++k) x[2 * 96 + k] = ToBFloat16(k % 2 == 0 ? 0.0f : 1e-38f);
  ForEveryContext([&](const Context& context) {
    const std::vector<float> y = Product(context, w, 4, x, nullptr);
    for (int64_t n = 0; n < 70; ++n) {
      EXPECT_TRUE(std::isnan(y[n]) && std::isnan(y[70 + n])) << n;
      EXPECT_EQ(y[2 * 70 + n], 0) << n;
      EXPECT_TRUE(std::isfinite(y[3 * 70 + n])) << n;
    }
  });
}

}  // namespace
}  // namespace weft
