#include "nn/initialise.h"

#include <cmath>
#include <gtest/gtest.h>

namespace weft {
namespace {

// Largest |v_i . v_j - [i = j]| over the shorter side's vectors.
double Defect(const Tensor& matrix) {
  const int64_t rows = matrix.dim(0), columns = matrix.dim(1);
  const bool tall = rows >= columns;
  const int64_t vectors = tall ? columns : rows, length = tall ? rows : columns;
  const auto at = [&](int64_t vector, int64_t i) {
    const int64_t row = tall ? i : vector, column = tall ? vector : i;
    return static_cast<double>(matrix.data<float>()[static_cast<size_t>(row * columns + column)]);
  };
  double worst = 0;
  for (int64_t a = 0; a < vectors; ++a) {
    for (int64_t b = 0; b <= a; ++b) {
      double dot = 0;
      for (int64_t i = 0; i < length; ++i) dot += at(a, i) * at(b, i);
      worst = std::max(worst, std::fabs(dot - (a == b ? 1 : 0)));
    }
  }
  return worst;
}

TEST(Initialise, OrthogonalMatricesAreOrthonormalOnTheirShorterSide) {
  Rng rng(1, Purpose::kTest);
  for (const auto& [rows, columns] :
       {std::pair<int64_t, int64_t>{64, 64}, {17, 64}, {64, 6}, {1, 5}, {5, 1}}) {
    EXPECT_LT(Defect(OrthogonalMatrix(rows, columns, rng)), 1e-6) << rows << " x " << columns;
  }
}

TEST(Initialise, OrthogonalMatricesHaveNoPreferredSign) {
  Rng rng(2, Purpose::kTest);
  // The entries of a uniformly distributed orthogonal matrix have mean 0 and variance 1/n.
  double sum = 0, squares = 0, trace = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const Tensor q = OrthogonalMatrix(4, 4, rng);
    for (const float value : q.data<float>()) {
      sum += static_cast<double>(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    for (size_t i = 0; i < 4; ++i) trace += static_cast<double>(q.data<float>()[i * 5]);
  }
  EXPECT_NEAR(sum / 6400, 0, 4 * 0.5 / std::sqrt(6400.0));
  EXPECT_NEAR(squares / 6400, 0.25, 1e-6);
  EXPECT_NEAR(trace / 400, 0, 4.0 / std::sqrt(400.0));  // variance of the trace is 1
}

TEST(Initialise, GainScalesAndBiasIsZero) {
  Rng rng(3, Purpose::kTest);
  Tensor weight =
      MakeWeight(8, 8, 8, Initialisation::Orthogonal(2), rng).ToLayout(Layout::kRowMajor);
  for (float& value : weight.data<float>()) value *= 0.5f;
  EXPECT_LT(Defect(weight), 1e-6);
  const Tensor bias = MakeBias(3, 8, Initialisation::Orthogonal(2), rng);
  for (const float value : bias.data<float>()) EXPECT_EQ(value, 0);
}

TEST(Initialise, UniformFillsItsInterval) {
  Rng rng(4, Purpose::kTest);
  const Tensor weight =
      MakeWeight(16, 100, 16, Initialisation::Uniform(), rng).ToLayout(Layout::kRowMajor);
  double low = 0, high = 0, squares = 0;
  for (const float value : weight.data<float>()) {
    low = std::min(low, static_cast<double>(value));
    high = std::max(high, static_cast<double>(value));
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  EXPECT_GE(low, -0.25);
  EXPECT_LT(low, -0.24);
  EXPECT_LE(high, 0.25);
  EXPECT_GT(high, 0.24);
  EXPECT_NEAR(squares / 1600, 0.0625 / 3, 0.002);
}

TEST(Initialise, EqualGeneratorsGiveEqualWeights) {
  Rng a(5, Purpose::kTest), b(5, Purpose::kTest);
  const Tensor x = OrthogonalMatrix(20, 30, a), y = OrthogonalMatrix(20, 30, b);
  EXPECT_TRUE(std::ranges::equal(x.data<float>(), y.data<float>()));
}

}  // namespace
}  // namespace weft
