// Dense layers and panels. The expected bits come from the plain loops of reference.h; those are
// held against sums in double here.
#include "tensor/kernels.h"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "tensor/reference.h"
#include "tensor/tensor.h"
#include "tests/tensor/kernels_testing.h"

namespace weft {
namespace {

struct DenseShape {
  int64_t rows, in, out;
};

std::ostream& operator<<(std::ostream& out, const DenseShape& s) {
  return out << s.rows << "x" << s.in << "x" << s.out;
}

class DenseShapes : public testing::TestWithParam<DenseShape> {};
// Every tile height and width, every kind of last panel, several row blocks, sizes above and below
// the break-even.
INSTANTIATE_TEST_SUITE_P(
    Shapes, DenseShapes,
    testing::Values(DenseShape{1, 1, 1}, DenseShape{1, 17, 64}, DenseShape{2, 64, 64},
                    DenseShape{3, 5, 6}, DenseShape{4, 64, 100}, DenseShape{5, 7, 48},
                    DenseShape{6, 9, 33}, DenseShape{7, 64, 64}, DenseShape{8, 3, 130},
                    DenseShape{9, 4, 16}, DenseShape{11, 30, 80}, DenseShape{13, 17, 31},
                    DenseShape{15, 64, 6}, DenseShape{64, 64, 64}, DenseShape{64, 17, 64},
                    DenseShape{65, 65, 65}, DenseShape{257, 12, 70}, DenseShape{513, 33, 18},
                    DenseShape{600, 20, 112}, DenseShape{2, 300, 300}, DenseShape{0, 3, 5},
                    DenseShape{20, 4300, 34}, DenseShape{250, 5, 4300}, DenseShape{515, 103, 600}));

constexpr Activation kActivations[] = {Activation::kNone, Activation::kTanh, Activation::kRelu,
                                       Activation::kSigmoid};

TEST_P(DenseShapes, ForwardHasTheBitsOfTheReference) {
  const auto [rows, in, out] = GetParam();
  Numbers numbers(1);
  const auto x = numbers.Vector(rows * in), row_major = numbers.Vector(in * out);
  const auto bias = numbers.Vector(out);
  std::vector<float> w(PanelElements(in, out));
  kernels::PackPanels(in, out, row_major.data(), w.data());
  for (const Activation activation : kActivations) {
    for (const float* b : {static_cast<const float*>(nullptr), bias.data()}) {
      std::vector<float> want(rows * out);
      reference::Dense(rows, in, out, x.data(), w.data(), b, activation, want.data());
      ForEveryContext([&](const Context& context) {
        std::vector<float> got(rows * out, NAN);
        kernels::Dense(context, rows, in, out, x.data(), w.data(), b, activation, got.data());
        EXPECT_TRUE(SameBits(got, want)) << Name(activation);
      });
    }
  }
}

TEST_P(DenseShapes, InputGradientHasTheBitsOfTheReference) {
  const auto [rows, in, out] = GetParam();
  Numbers numbers(2);
  const auto d_z = numbers.Vector(rows * out), row_major = numbers.Vector(in * out);
  const auto h = numbers.Vector(rows * in), before = numbers.Vector(rows * in);
  std::vector<float> wt(PanelElements(out, in));
  kernels::PackPanels(out, in, row_major.data(), wt.data());
  for (const Activation activation : kActivations) {
    std::vector<float> want = before;
    reference::DenseInputGradient(rows, in, out, d_z.data(), wt.data(), activation, h.data(), false,
                                  want.data());
    ForEveryContext([&](const Context& context) {
      std::vector<float> got(rows * in, NAN);
      kernels::DenseInputGradient(context, rows, in, out, d_z.data(), wt.data(), activation,
                                  h.data(), false, got.data());
      EXPECT_TRUE(SameBits(got, want)) << Name(activation);
    });
  }
  std::vector<float> want = before;
  reference::DenseInputGradient(rows, in, out, d_z.data(), wt.data(), Activation::kNone, nullptr,
                                true, want.data());
  ForEveryContext([&](const Context& context) {
    std::vector<float> got = before;
    kernels::DenseInputGradient(context, rows, in, out, d_z.data(), wt.data(), Activation::kNone,
                                nullptr, true, got.data());
    EXPECT_TRUE(SameBits(got, want)) << "accumulate";
  });
}

TEST_P(DenseShapes, WeightGradientHasTheBitsOfTheReference) {
  const auto [rows, in, out] = GetParam();
  Numbers numbers(3);
  const auto x = numbers.Vector(rows * in), d_z = numbers.Vector(rows * out);
  for (const bool accumulate : {false, true}) {
    std::vector<float> before(PanelElements(in, out)), bias_before = numbers.Vector(out);
    kernels::PackPanels(in, out, numbers.Vector(in * out).data(), before.data());
    std::vector<float> want = before, want_bias = bias_before;
    reference::DenseWeightGradient(rows, in, out, x.data(), d_z.data(), accumulate, want.data(),
                                   want_bias.data());
    ForEveryContext([&](const Context& context) {
      std::vector<float> got = before, got_bias = bias_before;
      kernels::DenseWeightGradient(context, rows, in, out, x.data(), d_z.data(), accumulate,
                                   got.data(), got_bias.data());
      EXPECT_TRUE(SameBits(got, want)) << accumulate;
      EXPECT_TRUE(SameBits(got_bias, want_bias)) << accumulate;
    });
  }
}

TEST_P(DenseShapes, TransposedPanelsHoldTheTransposedMatrix) {
  const auto [rows, in, out] = GetParam();
  const auto row_major = Numbers(4).Vector(in * out);
  std::vector<float> w(PanelElements(in, out)), want(PanelElements(out, in), NAN);
  kernels::PackPanels(in, out, row_major.data(), w.data());
  std::vector<float> transposed(in * out);
  for (int64_t k = 0; k < in; ++k) {
    for (int64_t n = 0; n < out; ++n) transposed[n * in + k] = row_major[k * out + n];
  }
  kernels::PackPanels(out, in, transposed.data(), want.data());
  ForEveryContext([&](const Context& context) {
    std::vector<float> got(PanelElements(out, in), NAN);
    kernels::TransposePanels(context, in, out, w.data(), got.data());
    EXPECT_TRUE(SameBits(got, want));
  });
  std::vector<float> back(in * out, NAN);
  kernels::UnpackPanels(in, out, w.data(), back.data());
  EXPECT_TRUE(SameBits(back, row_major));
  std::vector<float> packed(PanelElements(in, out), NAN);
  reference::PackPanels(in, out, row_major.data(), packed.data());
  EXPECT_TRUE(SameBits(w, packed));
}

TEST(Dense, IsCloseToASumInDouble) {
  constexpr int64_t kRows = 20, kIn = 300, kOut = 30;
  Numbers numbers(5);
  const auto x = numbers.Vector(kRows * kIn), w = numbers.Vector(kIn * kOut);
  const auto bias = numbers.Vector(kOut);
  std::vector<float> panels(PanelElements(kIn, kOut)), y(kRows * kOut);
  kernels::PackPanels(kIn, kOut, w.data(), panels.data());
  kernels::Dense({}, kRows, kIn, kOut, x.data(), panels.data(), bias.data(), Activation::kTanh,
                 y.data());
  for (int64_t b = 0; b < kRows; ++b) {
    for (int64_t n = 0; n < kOut; ++n) {
      double sum = bias[n];
      for (int64_t k = 0; k < kIn; ++k)
        sum += static_cast<double>(x[b * kIn + k]) * w[k * kOut + n];
      EXPECT_NEAR(y[b * kOut + n], std::tanh(sum), 1e-5);
    }
  }
}

TEST(Dense, ARowDoesNotDependOnItsPlaceOrOnTheBatch) {
  constexpr int64_t kRows = 40, kIn = 70, kOut = 90;
  Numbers numbers(6);
  const auto x = numbers.Vector(kRows * kIn);
  std::vector<float> w(PanelElements(kIn, kOut));
  kernels::PackPanels(kIn, kOut, numbers.Vector(kIn * kOut).data(), w.data());
  ForEveryContext([&](const Context& context) {
    std::vector<float> all(kRows * kOut);
    kernels::Dense(context, kRows, kIn, kOut, x.data(), w.data(), nullptr, Activation::kTanh,
                   all.data());
    for (const int64_t count : {1, 2, 3, 5, 7, 12, 13}) {
      for (int64_t row = 0; row + count <= kRows; row += count) {
        std::vector<float> some(count * kOut);
        kernels::Dense(context, count, kIn, kOut, x.data() + row * kIn, w.data(), nullptr,
                       Activation::kTanh, some.data());
        EXPECT_TRUE(SameBits(some, {all.begin() + row * kOut, all.begin() + (row + count) * kOut}));
      }
    }
  });
}

TEST(DenseWeightGradient, MicroBatchesOfBlocksGiveTheBitsOfOneBatch) {
  constexpr int64_t kRows = 1000, kIn = 20, kOut = 40, kCut = 512;
  Numbers numbers(7);
  const auto x = numbers.Vector(kRows * kIn), d_z = numbers.Vector(kRows * kOut);
  std::vector<float> whole(PanelElements(kIn, kOut)), parts = whole;
  std::vector<float> whole_bias(kOut), parts_bias(kOut);
  kernels::DenseWeightGradient({}, kRows, kIn, kOut, x.data(), d_z.data(), false, whole.data(),
                               whole_bias.data());
  kernels::DenseWeightGradient({}, kCut, kIn, kOut, x.data(), d_z.data(), false, parts.data(),
                               parts_bias.data());
  kernels::DenseWeightGradient({}, kRows - kCut, kIn, kOut, x.data() + kCut * kIn,
                               d_z.data() + kCut * kOut, true, parts.data(), parts_bias.data());
  EXPECT_TRUE(SameBits(parts, whole));
  EXPECT_TRUE(SameBits(parts_bias, whole_bias));
}

TEST(DenseWeightGradient, PaddingIsZeroWhenTheInputIsNotFinite) {
  constexpr int64_t kRows = 3, kIn = 2, kOut = 5;
  const std::vector<float> x(kRows * kIn, INFINITY), d_z(kRows * kOut, 1.0f);
  ForEveryContext([&](const Context& context) {
    std::vector<float> d_w(PanelElements(kIn, kOut), NAN);
    kernels::DenseWeightGradient(context, kRows, kIn, kOut, x.data(), d_z.data(), false, d_w.data(),
                                 nullptr);
    for (int64_t k = 0; k < kIn; ++k) {
      for (int64_t n = 0; n < 16; ++n) EXPECT_EQ(d_w[k * 16 + n], n < kOut ? INFINITY : 0.0f);
    }
  });
}

TEST(Dense, NotANumberIsNotHiddenByAnActivation) {
  const std::vector<float> x = {NAN}, w(16, 1.0f);
  for (const Activation activation : kActivations) {
    ForEveryContext([&](const Context& context) {
      float y = 0, d_x = 0;
      kernels::Dense(context, 1, 1, 1, x.data(), w.data(), nullptr, activation, &y);
      EXPECT_TRUE(std::isnan(y)) << Name(activation);
      kernels::DenseInputGradient(context, 1, 1, 1, x.data(), w.data(), activation, w.data(), false,
                                  &d_x);
      EXPECT_TRUE(std::isnan(d_x)) << Name(activation);
    });
  }
}

}  // namespace
}  // namespace weft
