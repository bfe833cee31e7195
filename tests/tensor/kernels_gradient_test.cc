// Gradients of kernels with more than one input against differences of plain formulas in double.
#include <algorithm>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

#include "tensor/kernels.h"
#include "tests/tensor/kernels_testing.h"

namespace weft {
namespace {

using Vector = std::vector<double>;

Vector Doubles(const std::vector<float>& x) {
  return {x.begin(), x.end()};
}

double Dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// d/dx of <weights, f(x)> by central differences.
Vector Differences(const std::function<Vector(const Vector&)>& f, Vector x, const Vector& weights) {
  Vector slopes(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double h = 1e-5, before = x[i];
    x[i] = before + h;
    const double above = Dot(f(x), weights);
    x[i] = before - h;
    slopes[i] = (above - Dot(f(x), weights)) / (2 * h);
    x[i] = before;
  }
  return slopes;
}

void ExpectNear(const std::vector<float>& got, const Vector& want, const char* what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], 2e-5 * (1 + std::abs(want[i]))) << what << "[" << i << "]";
  }
}

double Sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

constexpr int64_t kColumns = 7;

Vector Softmax(const Vector& x) {
  Vector y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = std::exp(x[i]);
  const double sum = std::accumulate(y.begin(), y.end(), 0.0);
  for (double& v : y) v /= sum;
  return y;
}

Vector LogSoftmax(const Vector& x) {
  Vector y = Softmax(x);
  for (double& v : y) v = std::log(v);
  return y;
}

TEST(Gradients, OfSoftmaxAndLogSoftmaxAreThoseOfTheFormulas) {
  Numbers numbers(1);
  const auto x = numbers.Vector(kColumns, 2), d_y = numbers.Vector(kColumns);
  std::vector<float> y(kColumns), d_x(kColumns);
  kernels::Softmax({}, 1, kColumns, x.data(), y.data());
  kernels::SoftmaxGradient({}, 1, kColumns, y.data(), d_y.data(), false, d_x.data());
  ExpectNear(y, Softmax(Doubles(x)), "softmax");
  ExpectNear(d_x, Differences(Softmax, Doubles(x), Doubles(d_y)), "softmax gradient");
  kernels::LogSoftmax({}, 1, kColumns, x.data(), y.data());
  kernels::LogSoftmaxGradient({}, 1, kColumns, y.data(), d_y.data(), false, d_x.data());
  ExpectNear(y, LogSoftmax(Doubles(x)), "log softmax");
  ExpectNear(d_x, Differences(LogSoftmax, Doubles(x), Doubles(d_y)), "log softmax gradient");
}

TEST(Gradients, OfLayerNormAreThoseOfTheFormula) {
  constexpr int64_t kRows = 3;
  Numbers numbers(2);
  const auto x = numbers.Vector(kRows * kColumns, 2), d_y = numbers.Vector(kRows * kColumns);
  const auto gamma = numbers.Vector(kColumns), beta = numbers.Vector(kColumns);
  const double epsilon = 1e-3;
  // x, gamma and beta one after another.
  const auto formula = [&](const Vector& all) {
    Vector out;
    for (int64_t row = 0; row < kRows; ++row) {
      const double* v = all.data() + row * kColumns;
      const double* g = all.data() + kRows * kColumns;
      const double mean = std::accumulate(v, v + kColumns, 0.0) / kColumns;
      double variance = 0;
      for (int64_t i = 0; i < kColumns; ++i) variance += (v[i] - mean) * (v[i] - mean) / kColumns;
      for (int64_t i = 0; i < kColumns; ++i) {
        out.push_back((v[i] - mean) / std::sqrt(variance + epsilon) * g[i] + g[kColumns + i]);
      }
    }
    return out;
  };
  Vector all = Doubles(x);
  all.insert(all.end(), gamma.begin(), gamma.end());
  all.insert(all.end(), beta.begin(), beta.end());
  const Vector want = Differences(formula, all, Doubles(d_y));
  std::vector<float> y(x.size()), mean(kRows), rstd(kRows);
  std::vector<float> d_x(x.size()), d_gamma(kColumns), d_beta(kColumns);
  kernels::LayerNorm({}, kRows, kColumns, x.data(), gamma.data(), beta.data(),
                     static_cast<float>(epsilon), {y.data(), false}, mean.data(), rstd.data());
  kernels::LayerNormGradient({}, kRows, kColumns, x.data(), gamma.data(), mean.data(), rstd.data(),
                             d_y.data(), false, d_x.data(), d_gamma.data(), d_beta.data());
  ExpectNear(y, formula(all), "layer norm");
  d_x.insert(d_x.end(), d_gamma.begin(), d_gamma.end());
  d_x.insert(d_x.end(), d_beta.begin(), d_beta.end());
  ExpectNear(d_x, want, "layer norm gradient");
}

TEST(Gradients, OfTheLstmCellAreThoseOfTheFormula) {
  constexpr int64_t kHidden = 5;
  Numbers numbers(3);
  const auto gates = numbers.Vector(4 * kHidden, 2), c = numbers.Vector(kHidden);
  const auto d_c = numbers.Vector(kHidden), d_h = numbers.Vector(kHidden);
  // Gates, then c; gives new_c, then new_h.
  const auto formula = [&](const Vector& in) {
    Vector out(2 * kHidden);
    for (int64_t j = 0; j < kHidden; ++j) {
      const double i = Sigmoid(in[j]), f = Sigmoid(in[kHidden + j]);
      const double g = std::tanh(in[2 * kHidden + j]), o = Sigmoid(in[3 * kHidden + j]);
      out[j] = f * in[4 * kHidden + j] + i * g;
      out[kHidden + j] = o * std::tanh(out[j]);
    }
    return out;
  };
  Vector in = Doubles(gates), weights = Doubles(d_c);
  in.insert(in.end(), c.begin(), c.end());
  weights.insert(weights.end(), d_h.begin(), d_h.end());
  std::vector<float> out(2 * kHidden), kept(5 * kHidden), d_in(5 * kHidden);
  kernels::LstmCell({}, 1, kHidden, gates.data(), c.data(), out.data(), out.data() + kHidden,
                    kept.data());
  kernels::LstmCellGradient({}, 1, kHidden, kept.data(), c.data(), d_c.data(), d_h.data(),
                            d_in.data(), d_in.data() + 4 * kHidden);
  ExpectNear(out, formula(in), "lstm");
  ExpectNear(d_in, Differences(formula, in, weights), "lstm gradient");
}

TEST(Gradients, OfTheGruCellAreThoseOfTheFormula) {
  constexpr int64_t kHidden = 5;
  Numbers numbers(4);
  const auto x_gates = numbers.Vector(3 * kHidden, 2), h_gates = numbers.Vector(3 * kHidden, 2);
  const auto h = numbers.Vector(kHidden), d_h = numbers.Vector(kHidden);
  // Sums of x, sums of h, then h; gives new_h.
  const auto formula = [&](const Vector& in) {
    Vector out(kHidden);
    const double* from_h = in.data() + 3 * kHidden;
    for (int64_t j = 0; j < kHidden; ++j) {
      const double r = Sigmoid(in[j] + from_h[j]);
      const double z = Sigmoid(in[kHidden + j] + from_h[kHidden + j]);
      const double n = std::tanh(in[2 * kHidden + j] + r * from_h[2 * kHidden + j]);
      out[j] = (1 - z) * n + z * from_h[3 * kHidden + j];
    }
    return out;
  };
  Vector in = Doubles(x_gates);
  in.insert(in.end(), h_gates.begin(), h_gates.end());
  in.insert(in.end(), h.begin(), h.end());
  std::vector<float> out(kHidden), kept(4 * kHidden), d_in(7 * kHidden);
  kernels::GruCell({}, 1, kHidden, x_gates.data(), h_gates.data(), h.data(), out.data(),
                   kept.data());
  kernels::GruCellGradient({}, 1, kHidden, kept.data(), h.data(), d_h.data(), d_in.data(),
                           d_in.data() + 3 * kHidden, d_in.data() + 6 * kHidden);
  ExpectNear(out, formula(in), "gru");
  ExpectNear(d_in, Differences(formula, in, Doubles(d_h)), "gru gradient");
}

TEST(Gradients, OfBinaryOperationsAreThoseOfTheFormulas) {
  constexpr int64_t kRows = 3;
  Numbers numbers(5);
  const auto a = numbers.Vector(kRows * kColumns, 2), b = numbers.Vector(kColumns, 2);
  const auto d_y = numbers.Vector(kRows * kColumns);
  const std::function<double(double, double)> formulas[] = {
      [](double p, double q) { return p + q; },
      [](double p, double q) { return p - q; },
      [](double p, double q) { return p * q; },
      [](double p, double q) { return p / q; },
      [](double p, double q) { return std::min(p, q); },
      [](double p, double q) { return std::max(p, q); }};
  for (int op = 0; op < 6; ++op) {
    const auto formula = [&](const Vector& in) {
      Vector out(kRows * kColumns);
      for (int64_t i = 0; i < kRows * kColumns; ++i) {
        out[i] = formulas[op](in[i], in[kRows * kColumns + i % kColumns]);
      }
      return out;
    };
    Vector in = Doubles(a);
    in.insert(in.end(), b.begin(), b.end());
    std::vector<float> d_in(in.size());
    kernels::BinaryGradient({}, static_cast<Binary>(op), Broadcasting::kRow, kRows, kColumns,
                            a.data(), b.data(), d_y.data(), false, d_in.data(), false,
                            d_in.data() + kRows * kColumns);
    ExpectNear(d_in, Differences(formula, in, Doubles(d_y)), "binary");
  }
}

TEST(Gradients, OfTiesInMinimumAndMaximumAreHalved) {
  const float a = 2, b = 2, d_y = 1;
  for (const Binary op : {Binary::kMinimum, Binary::kMaximum}) {
    float d_a = 0, d_b = 0;
    kernels::BinaryGradient({}, op, Broadcasting::kNone, 1, 1, &a, &b, &d_y, false, &d_a, false,
                            &d_b);
    EXPECT_EQ(d_a, 0.5f);
    EXPECT_EQ(d_b, 0.5f);
  }
}

}  // namespace
}  // namespace weft
