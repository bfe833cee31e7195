// Row-wise kernels and convolutions: the bits of the plain loops at every level and thread count.
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "tensor/kernels.h"
#include "tensor/reference.h"
#include "tests/tensor/kernels_testing.h"

namespace weft {
namespace {

class RowShapes : public testing::TestWithParam<std::pair<int64_t, int64_t>> {};
INSTANTIATE_TEST_SUITE_P(Shapes, RowShapes,
                         testing::Values(std::pair(0, 5), std::pair(1, 1), std::pair(3, 6),
                                         std::pair(7, 16), std::pair(4, 33), std::pair(2, 3000),
                                         std::pair(700, 18), std::pair(300, 130)));

TEST_P(RowShapes, SoftmaxFamilyHasTheBitsOfTheReference) {
  const auto [rows, columns] = GetParam();
  const int64_t count = rows * columns;
  Numbers numbers(1);
  auto x = numbers.Vector(count, 5);
  for (int64_t i = 3; i < count; i += 11) x[i] = -INFINITY;  // masked actions
  const auto d_y = numbers.Vector(count), before = numbers.Vector(count);
  std::vector<float> want(count), want_log(count), want_d = before, want_log_d = before;
  reference::Softmax(rows, columns, x.data(), want.data());
  reference::LogSoftmax(rows, columns, x.data(), want_log.data());
  reference::SoftmaxGradient(rows, columns, want.data(), d_y.data(), true, want_d.data());
  reference::LogSoftmaxGradient(rows, columns, want_log.data(), d_y.data(), true,
                                want_log_d.data());
  ForEveryContext([&](const Context& context) {
    std::vector<float> y(count, NAN), log_y(count, NAN), d = before, log_d = before;
    kernels::Softmax(context, rows, columns, x.data(), y.data());
    kernels::LogSoftmax(context, rows, columns, x.data(), log_y.data());
    kernels::SoftmaxGradient(context, rows, columns, y.data(), d_y.data(), true, d.data());
    kernels::LogSoftmaxGradient(context, rows, columns, log_y.data(), d_y.data(), true,
                                log_d.data());
    EXPECT_TRUE(SameBits(y, want));
    EXPECT_TRUE(SameBits(log_y, want_log));
    EXPECT_TRUE(SameBits(d, want_d));
    EXPECT_TRUE(SameBits(log_d, want_log_d));
    std::vector<float> in_place = x;
    kernels::LogSoftmax(context, rows, columns, in_place.data(), in_place.data());
    EXPECT_TRUE(SameBits(in_place, want_log));
  });
}

TEST_P(RowShapes, LayerNormHasTheBitsOfTheReference) {
  const auto [rows, columns] = GetParam();
  const int64_t count = rows * columns;
  Numbers numbers(2);
  const auto x = numbers.Vector(count, 3), d_y = numbers.Vector(count);
  const auto gamma = numbers.Vector(columns), beta = numbers.Vector(columns);
  const auto before = numbers.Vector(count);
  std::vector<float> want(count), mean(rows), rstd(rows), want_d = before;
  std::vector<float> want_gamma(columns), want_beta(columns);
  reference::LayerNorm(rows, columns, x.data(), gamma.data(), beta.data(), 1e-5f, want.data(),
                       mean.data(), rstd.data());
  reference::LayerNormGradient(rows, columns, x.data(), gamma.data(), mean.data(), rstd.data(),
                               d_y.data(), true, want_d.data(), want_gamma.data(),
                               want_beta.data());
  ForEveryContext([&](const Context& context) {
    std::vector<float> y(count, NAN), got_mean(rows, NAN), got_rstd(rows, NAN), d = before;
    std::vector<float> d_gamma(columns, NAN), d_beta(columns, NAN);
    kernels::LayerNorm(context, rows, columns, x.data(), gamma.data(), beta.data(), 1e-5f,
                       {y.data(), false}, got_mean.data(), got_rstd.data());
    kernels::LayerNormGradient(context, rows, columns, x.data(), gamma.data(), got_mean.data(),
                               got_rstd.data(), d_y.data(), true, d.data(), d_gamma.data(),
                               d_beta.data());
    EXPECT_TRUE(SameBits(y, want));
    EXPECT_TRUE(SameBits(got_mean, mean));
    EXPECT_TRUE(SameBits(got_rstd, rstd));
    EXPECT_TRUE(SameBits(d, want_d));
    EXPECT_TRUE(SameBits(d_gamma, want_gamma));
    EXPECT_TRUE(SameBits(d_beta, want_beta));
  });
}

TEST_P(RowShapes, RecurrentCellsHaveTheBitsOfTheReference) {
  const auto [rows, hidden] = GetParam();
  const int64_t n = rows * hidden;
  Numbers numbers(3);
  const auto gates = numbers.Vector(4 * n, 3), state = numbers.Vector(n),
             more = numbers.Vector(3 * n, 3);
  const auto d_h = numbers.Vector(n), d_c = numbers.Vector(n);
  std::vector<float> c(n), h(n), kept(5 * n), d_gates(4 * n), d_state(n);
  reference::LstmCell(rows, hidden, gates.data(), state.data(), c.data(), h.data(), kept.data());
  reference::LstmCellGradient(rows, hidden, kept.data(), state.data(), d_c.data(), d_h.data(),
                              d_gates.data(), d_state.data());
  std::vector<float> gru_h(n), gru_kept(4 * n), d_x(3 * n), d_hg(3 * n), d_previous(n);
  reference::GruCell(rows, hidden, gates.data(), more.data(), state.data(), gru_h.data(),
                     gru_kept.data());
  reference::GruCellGradient(rows, hidden, gru_kept.data(), state.data(), d_h.data(), d_x.data(),
                             d_hg.data(), d_previous.data());
  ForEveryContext([&](const Context& context) {
    std::vector<float> got_c(n), got_h(n), got_kept(5 * n), got_d(4 * n), got_state(n);
    kernels::LstmCell(context, rows, hidden, gates.data(), state.data(), got_c.data(), got_h.data(),
                      got_kept.data());
    kernels::LstmCellGradient(context, rows, hidden, kept.data(), state.data(), d_c.data(),
                              d_h.data(), got_d.data(), got_state.data());
    EXPECT_TRUE(SameBits(got_c, c));
    EXPECT_TRUE(SameBits(got_h, h));
    EXPECT_TRUE(SameBits(got_kept, kept));
    EXPECT_TRUE(SameBits(got_d, d_gates));
    EXPECT_TRUE(SameBits(got_state, d_state));
    std::vector<float> got_gru(n), got_gru_kept(4 * n), got_x(3 * n), got_hg(3 * n), got_p(n);
    kernels::GruCell(context, rows, hidden, gates.data(), more.data(), state.data(), got_gru.data(),
                     got_gru_kept.data());
    kernels::GruCellGradient(context, rows, hidden, gru_kept.data(), state.data(), d_h.data(),
                             got_x.data(), got_hg.data(), got_p.data());
    EXPECT_TRUE(SameBits(got_gru, gru_h));
    EXPECT_TRUE(SameBits(got_gru_kept, gru_kept));
    EXPECT_TRUE(SameBits(got_x, d_x));
    EXPECT_TRUE(SameBits(got_hg, d_hg));
    EXPECT_TRUE(SameBits(got_p, d_previous));
  });
}

TEST_P(RowShapes, MaxLastFindsTheLowestIndexOfTheLargest) {
  const auto [rows, columns] = GetParam();
  auto x = Numbers(4).Vector(rows * columns);
  for (float& v : x) v = std::round(v * 4) / 4;  // many ties, zeros of both signs
  for (size_t i = 5; i < x.size(); i += 97) x[i] = NAN;
  for (size_t i = 7; i < x.size(); i += 89) x[i] = -INFINITY;
  std::vector<float> want(rows);
  std::vector<int64_t> want_index(rows);
  reference::MaxLast(rows, columns, x.data(), want.data(), want_index.data());
  ForEveryContext([&](const Context& context) {
    std::vector<float> y(rows, -7);
    std::vector<int64_t> index(rows, -1);
    kernels::MaxLast(context, rows, columns, x.data(), y.data(), index.data());
    EXPECT_TRUE(SameBits(y, want));
    EXPECT_EQ(index, want_index);
  });
}

TEST(MaxLast, OfARowOfMinusInfinityIsItsFirstElement) {
  const std::vector<float> x(20, -INFINITY);
  ForEveryContext([&](const Context& context) {
    float y = 0;
    int64_t index = -1;
    kernels::MaxLast(context, 1, 20, x.data(), &y, &index);
    EXPECT_EQ(y, -INFINITY);
    EXPECT_EQ(index, 0);
  });
}

TEST(Softmax, OfLargeNumbersIsExactAndSumsToOne) {
  const float x[] = {1000.0f, 1000.0f, -1000.0f, 998.0f};
  float y[4], log_y[4];
  kernels::Softmax({}, 1, 4, x, y);
  kernels::LogSoftmax({}, 1, 4, x, log_y);
  const double total = 2 + std::exp(-2.0);
  EXPECT_NEAR(y[0], 1 / total, 1e-7);
  EXPECT_EQ(y[2], 0.0f);
  EXPECT_NEAR(y[3], std::exp(-2.0) / total, 1e-7);
  EXPECT_NEAR(log_y[0], -std::log(total), 1e-6);
  EXPECT_NEAR(log_y[2], -2000 - std::log(total), 1e-3);
}

struct Images {
  int64_t batch, channels, height, width, kernel, stride, pad;
};
class Convolutions : public testing::TestWithParam<Images> {};
INSTANTIATE_TEST_SUITE_P(Shapes, Convolutions,
                         testing::Values(Images{1, 1, 1, 1, 1, 1, 0}, Images{2, 3, 8, 7, 3, 1, 1},
                                         Images{2, 2, 9, 11, 4, 2, 0}, Images{1, 2, 5, 5, 5, 3, 4},
                                         Images{3, 4, 20, 20, 8, 4, 0},
                                         Images{9, 4, 36, 36, 3, 2, 1},
                                         Images{2, 1, 2, 3, 3, 1, 2}));

TEST_P(Convolutions, PatchesAndTheirTransposeHaveTheBitsOfTheReference) {
  const auto [batch, channels, height, width, kernel, stride, pad] = GetParam();
  const int64_t pixels = batch * channels * height * width;
  const int64_t oh = (height + 2 * pad - kernel) / stride + 1;
  const int64_t ow = (width + 2 * pad - kernel) / stride + 1;
  const int64_t count = batch * oh * ow * channels * kernel * kernel;
  Numbers numbers(5);
  const auto x = numbers.Vector(pixels), d = numbers.Vector(count), before = numbers.Vector(pixels);
  std::vector<float> want(count), want_d = before, want_added = before;
  reference::Im2Col(batch, channels, height, width, kernel, stride, pad, x.data(), want.data());
  reference::Col2Im(batch, channels, height, width, kernel, stride, pad, d.data(), false,
                    want_d.data());
  reference::Col2Im(batch, channels, height, width, kernel, stride, pad, d.data(), true,
                    want_added.data());
  // <Im2Col(x), d> = <x, Col2Im(d)>: one is the transpose of the other.
  double left = 0, right = 0;
  for (int64_t i = 0; i < count; ++i) left += static_cast<double>(want[i]) * d[i];
  for (int64_t i = 0; i < pixels; ++i) right += static_cast<double>(x[i]) * want_d[i];
  EXPECT_NEAR(left, right, 1e-4);
  ForEveryContext([&](const Context& context) {
    std::vector<float> patches(count, NAN), d_x(pixels, NAN), added = before;
    kernels::Im2Col(context, batch, channels, height, width, kernel, stride, pad, x.data(),
                    patches.data());
    kernels::Col2Im(context, batch, channels, height, width, kernel, stride, pad, d.data(), false,
                    d_x.data());
    kernels::Col2Im(context, batch, channels, height, width, kernel, stride, pad, d.data(), true,
                    added.data());
    EXPECT_TRUE(SameBits(patches, want));
    EXPECT_TRUE(SameBits(d_x, want_d));
    EXPECT_TRUE(SameBits(added, want_added));
  });
}

TEST(SwapLastTwo, HasTheBitsOfTheReference) {
  for (const auto& [a, b] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {8, 8}, {3, 70}, {81, 64}, {17, 9}, {400, 32}}) {
    const auto x = Numbers(6).Vector(3 * a * b);
    std::vector<float> want(x.size());
    reference::SwapLastTwo(3, a, b, x.data(), want.data());
    ForEveryContext([&](const Context& context) {
      std::vector<float> y(x.size(), NAN);
      kernels::SwapLastTwo(context, 3, a, b, x.data(), y.data());
      EXPECT_TRUE(SameBits(y, want)) << a << "x" << b;
    });
  }
}

}  // namespace
}  // namespace weft
