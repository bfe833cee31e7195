// The row kernels of transformers against their formulas in double; equal bits at every level and
// thread count.
#include "tensor/kernels_transformer.h"

#include <cmath>
#include <gtest/gtest.h>
#include <optional>
#include <vector>

#include "tests/tensor/kernels_testing.h"

namespace weft {
namespace {

// Runs body(context, result) in every context: results are near `want` and equal in every bit.
template <class F>
void ExpectNear(const std::vector<double>& want, double tolerance, F&& body) {
  std::optional<std::vector<float>> first;
  ForEveryContext([&](const Context& context) {
    std::vector<float> got(want.size(), NAN);
    body(context, got.data());
    if (first) {
      EXPECT_TRUE(SameBits(got, *first));
      return;
    }
    first = got;
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_NEAR(got[i], want[i], tolerance * (1 + std::fabs(want[i]))) << "element " << i;
    }
  });
}

constexpr int64_t kRows = 70, kColumns = 75;

TEST(RmsNorm, ForwardAndGradientFollowTheFormula) {
  Numbers numbers(1);
  const auto x = numbers.Vector(kRows * kColumns, 3), w = numbers.Vector(kColumns);
  const auto d_y = numbers.Vector(kRows * kColumns);
  for (const float offset : {0.0f, 1.0f}) {
    std::vector<double> y, d_x, d_w(kColumns);
    for (int64_t r = 0; r < kRows; ++r) {
      double squares = 0, dot = 0;
      for (int64_t i = 0; i < kColumns; ++i) squares += std::pow(x[r * kColumns + i], 2);
      const double rstd = 1 / std::sqrt(squares / kColumns + 1e-5);
      for (int64_t i = 0; i < kColumns; ++i) {
        dot += d_y[r * kColumns + i] * (w[i] + offset) * x[r * kColumns + i];
      }
      for (int64_t i = 0; i < kColumns; ++i) {
        const double v = x[r * kColumns + i], d = d_y[r * kColumns + i];
        y.push_back(v * rstd * (w[i] + offset));
        d_x.push_back(rstd * (d * (w[i] + offset) - v * rstd * rstd * dot / kColumns));
        d_w[i] += d * v * rstd;
      }
    }
    std::vector<float> rstd(kRows);
    ExpectNear(y, 1e-6, [&](const Context& context, float* got) {
      kernels::RmsNorm(context, kRows, kColumns, kColumns, x.data(), w.data(), offset, 1e-5f,
                       {got, false}, rstd.data());
    });
    ExpectNear(d_x, 1e-6, [&](const Context& context, float* got) {
      kernels::RmsNormGradient(context, kRows, kColumns, x.data(), w.data(), offset, rstd.data(),
                               d_y.data(), false, got, nullptr);
    });
    ExpectNear(d_w, 1e-6, [&](const Context& context, float* got) {
      std::fill(got, got + kColumns, 0.0f);
      std::vector<float> ignored(kRows * kColumns);
      kernels::RmsNormGradient(context, kRows, kColumns, x.data(), w.data(), offset, rstd.data(),
                               d_y.data(), false, ignored.data(), got);
    });
  }
}

TEST(Rotation, TurnsPairsByTheirAngleAndBack) {
  constexpr int64_t kTokens = 5, kHeads = 3, kDimension = 20, kPairs = 6, kStride = 70;
  Numbers numbers(2);
  const auto x = numbers.Vector(kTokens * kStride);
  const std::vector<int32_t> positions = {0, 7, 3, 1, 7};
  std::vector<float> table;
  for (int position = 0; position < 8; ++position) {
    const auto angle = [&](int64_t i) { return 0.3f * static_cast<float>(position * (i + 1)); };
    for (int64_t i = 0; i < kPairs; ++i) table.push_back(std::cos(angle(i)));
    for (int64_t i = 0; i < kPairs; ++i) table.push_back(std::sin(angle(i)));
  }
  std::vector<double> want(x.begin(), x.end());
  for (int64_t t = 0; t < kTokens; ++t) {
    for (int64_t h = 0; h < kHeads; ++h) {
      for (int64_t i = 0; i < kPairs; ++i) {
        const int64_t at = t * kStride + h * kDimension + i;
        const double angle = 0.3 * positions[t] * static_cast<double>(i + 1);
        want[at] = x[at] * std::cos(angle) - x[at + kPairs] * std::sin(angle);
        want[at + kPairs] = x[at + kPairs] * std::cos(angle) + x[at] * std::sin(angle);
      }
    }
  }
  ExpectNear(want, 1e-6, [&](const Context& context, float* got) {
    std::copy(x.begin(), x.end(), got);
    kernels::Rotate(context, kTokens, kHeads, kDimension, kPairs, kStride, table.data(),
                    positions.data(), false, got);
  });
  ExpectNear(std::vector<double>(x.begin(), x.end()), 1e-6,
             [&](const Context& context, float* got) {
               std::copy(want.begin(), want.end(), got);
               kernels::Rotate(context, kTokens, kHeads, kDimension, kPairs, kStride, table.data(),
                               positions.data(), true, got);
             });
}

TEST(Gate, MultipliesTheActivationAndItsGradientIsThatOfDifferences) {
  Numbers numbers(3);
  const auto x = numbers.Vector(kRows * 2 * kColumns, 3), d_y = numbers.Vector(kRows * kColumns);
  const auto silu = [](double v) { return v / (1 + std::exp(-v)); };
  std::vector<double> y, d_x(x.size());
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t i = 0; i < kColumns; ++i) {
      const int64_t gate = r * 2 * kColumns + i, up = gate + kColumns;
      const double d = d_y[r * kColumns + i], step = 1e-6;
      y.push_back(silu(x[gate]) * x[up]);
      d_x[gate] = d * x[up] * (silu(x[gate] + step) - silu(x[gate] - step)) / (2 * step);
      d_x[up] = d * silu(x[gate]);
    }
  }
  ExpectNear(y, 1e-6, [&](const Context& context, float* got) {
    kernels::Gate(context, kRows, kColumns, Unary::kSilu, true, x.data(), {got, false});
  });
  ExpectNear(d_x, 1e-6, [&](const Context& context, float* got) {
    kernels::GateGradient(context, kRows, kColumns, Unary::kSilu, true, x.data(), d_y.data(),
                          {got, false});
  });
}

// log p of a target and the entropy, by differences of the logits.
TEST(Logits, StatisticsAndGradientThroughTemperatureAndCap) {
  constexpr int64_t kVocabulary = 90, kTokens = 3;
  Numbers numbers(4);
  const auto x = numbers.Vector(kTokens * kVocabulary, 5);
  const std::vector<int32_t> target = {4, -1, 89};
  const std::vector<float> d_log_p = {0.7f, 0, -1.2f}, d_entropy = {0.3f, 0.5f, -0.2f};
  for (const float cap : {0.0f, 4.0f}) {
    const float scale = 0.8f;
    const auto loss = [&](const std::vector<double>& logits) {
      double total = 0;
      for (int64_t t = 0; t < kTokens; ++t) {
        std::vector<double> z;
        double sum = 0, entropy = 0;
        for (int64_t i = 0; i < kVocabulary; ++i) {
          const double v = logits[t * kVocabulary + i];
          z.push_back(scale * (cap > 0 ? cap * std::tanh(v / cap) : v));
          sum += std::exp(z.back());
        }
        for (const double v : z) entropy -= std::exp(v) / sum * (v - std::log(sum));
        if (target[t] >= 0) total += d_log_p[t] * (z[target[t]] - std::log(sum));
        total += d_entropy[t] * entropy;
      }
      return total;
    };
    std::vector<double> at(x.begin(), x.end()), want;
    for (size_t i = 0; i < at.size(); ++i) {
      const double before = at[i], step = 1e-5;
      at[i] = before + step;
      const double up = loss(at);
      at[i] = before - step;
      want.push_back((up - loss(at)) / (2 * step));
      at[i] = before;
    }
    ExpectNear(want, 1e-6, [&](const Context& context, float* got) {
      std::vector<float> logits = x, log_sum(kTokens), entropy(kTokens);
      kernels::LogitStatistics(context, kTokens, kVocabulary, scale, cap, logits.data(),
                               log_sum.data(), entropy.data());
      kernels::LogitGradient(context, kTokens, kVocabulary, scale, cap, logits.data(),
                             log_sum.data(), entropy.data(), target.data(), d_log_p.data(),
                             d_entropy.data(), {got, false});
    });
  }
}

}  // namespace
}  // namespace weft
