// Forward values against numbers computed by hand, and the errors of wrong shapes. Gradients:
// tape_test.cc.
#include "tensor/ops.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

std::vector<float> Values(const Tensor& tensor) {
  const auto data = tensor.data<float>();
  return {data.begin(), data.end()};
}

std::vector<int64_t> Indices(const Tensor& tensor) {
  const auto data = tensor.data<int64_t>();
  return {data.begin(), data.end()};
}

const auto Near = [](std::vector<float> expected) { return Pointwise(FloatNear(1e-6f), expected); };

template <class Function>
std::string MessageOf(Function function) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

const Tensor kNone;
Tensor Matrix() {
  return Tensor::From<float>({2, 3}, {1, -2, 3, 0.5f, 0, -1});
}
Tensor Weight() {
  return Tensor::From<float>({3, 2}, {1, 2, 3, 4, 5, 6}).ToLayout(Layout::kPanels);
}

TEST(Ops, DenseIsMatrixProductPlusBiasThenActivation) {
  const Tensor bias = Tensor::From<float>({2}, {10, -20});
  EXPECT_THAT(Values(Dense(Matrix(), Weight(), bias)), ElementsAre(20, -8, 5.5f, -25));
  EXPECT_THAT(Values(Dense(Matrix(), Weight(), kNone)), ElementsAre(10, 12, -4.5f, -5));
  EXPECT_THAT(Values(Dense(Matrix(), Weight(), bias, Activation::kRelu)),
              ElementsAre(20, 0, 5.5f, 0));
  const Tensor cube = Tensor::Full({2, 4, 3}, 1);
  EXPECT_EQ(Dense(cube, Weight(), bias).shape(), Shape({2, 4, 2}));
}

TEST(Ops, DenseNamesBothShapesWhenTheyDoNotMeet) {
  const Tensor x = Tensor::Zeros({2, 4});
  EXPECT_THAT(
      MessageOf([&] { Dense(x, Weight(), kNone); }),
      HasSubstr("Dense: [2, 4] F32, [3, 2] F32 in panels: the columns of x are not the rows of w"));
  EXPECT_THAT(MessageOf([&] {
                Dense(Matrix(), Tensor::Zeros({3, 2}), kNone);
              }),
              HasSubstr("ToLayout"));
  EXPECT_THAT(MessageOf([&] { Dense(Matrix(), Weight(), Tensor::Zeros({3})); }), HasSubstr("bias"));
  EXPECT_THAT(MessageOf([&] {
                Dense(Tensor::Zeros({2, 3}, DType::kFloat64), Weight(), kNone);
              }),
              HasSubstr("F64"));
  EXPECT_THAT(MessageOf([&] { Dense(kNone, Weight(), kNone); }), HasSubstr("undefined"));
}

// One image of 3x3 counting pixels, a 2x2 kernel that sums, one that takes the upper left pixel.
TEST(Ops, Conv2dSlidesTheKernel) {
  const Tensor x = Tensor::From<float>({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Tensor w = Tensor::From<float>({4, 2}, {1, 1, 1, 0, 1, 0, 1, 0}).ToLayout(Layout::kPanels);
  const Tensor b = Tensor::From<float>({2}, {0, 100});
  const Tensor y = Conv2d(x, w, b, 2, 1, 0);
  EXPECT_EQ(y.shape(), Shape({1, 2, 2, 2}));
  EXPECT_THAT(Values(y), ElementsAre(12, 16, 24, 28, 101, 102, 104, 105));
  EXPECT_THAT(Values(Conv2d(x, w, b, 2, 2, 1)), ElementsAre(1, 5, 11, 28, 100, 100, 100, 105));
  EXPECT_THAT(MessageOf([&] { Conv2d(x, w, b, 4, 1, 0); }), HasSubstr("larger"));
  EXPECT_THAT(MessageOf([&] { Conv2d(x, w, b, 2, 0, 0); }), HasSubstr("stride 0"));
  EXPECT_THAT(MessageOf([&] { Conv2d(Matrix(), w, b, 2, 1, 0); }), HasSubstr("[2, 3] F32"));
}

TEST(Ops, UnaryOpsComputeTheirFunction) {
  const Tensor x = Tensor::From<float>({4}, {-2, 0, 0.5f, 3});
  const struct {
    Unary op;
    double (*function)(double);
  } cases[] = {
      {Unary::kNegate, [](double v) { return -v; }},
      {Unary::kExp, [](double v) { return std::exp(v); }},
      {Unary::kSquare, [](double v) { return v * v; }},
      {Unary::kAbs, [](double v) { return std::fabs(v); }},
      {Unary::kTanh, [](double v) { return std::tanh(v); }},
      {Unary::kRelu, [](double v) { return v > 0 ? v : 0; }},
      {Unary::kSigmoid, [](double v) { return 1 / (1 + std::exp(-v)); }},
      {Unary::kSoftplus, [](double v) { return std::log1p(std::exp(v)); }},
      {Unary::kElu, [](double v) { return v > 0 ? v : std::expm1(v); }},
      {Unary::kGelu,
       [](double v) {
         return 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
       }},
      {Unary::kGeluErf, [](double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); }},
      {Unary::kSilu, [](double v) { return v / (1 + std::exp(-v)); }},
      {Unary::kSin, [](double v) { return std::sin(v); }},
      {Unary::kCos, [](double v) { return std::cos(v); }},
  };
  for (const auto& [op, function] : cases) {
    const Tensor y = Apply(op, x);
    for (size_t i = 0; i < 4; ++i) {
      const double expected = function(x.data<float>()[i]);
      EXPECT_NEAR(y.data<float>()[i], expected, 1e-6 * (1 + std::fabs(expected)))
          << static_cast<int>(op);
    }
  }
  const Tensor positive = Tensor::From<float>({2}, {0.25f, 8});
  EXPECT_THAT(Values(Log(positive)), Near({-1.3862944f, 2.0794415f}));
  EXPECT_THAT(Values(Sqrt(positive)), Near({0.5f, 2.8284271f}));
  EXPECT_THAT(Values(Apply(Unary::kReciprocal, positive)), ElementsAre(4, 0.125f));
  EXPECT_THAT(MessageOf([&] { Log(Tensor::Zeros({2}, DType::kInt64)); }),
              HasSubstr("Log: [2] I64"));
  EXPECT_THAT(MessageOf([&] { Log(Weight()); }), HasSubstr("in panels"));
}

TEST(Ops, BinaryOpsBroadcastTheSecondOperand) {
  const Tensor a = Matrix();
  EXPECT_THAT(Values(Sub(a, a)), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(Values(Mul(a, Tensor::Scalar(2))), ElementsAre(2, -4, 6, 1, 0, -2));
  EXPECT_THAT(Values(Add(a, Tensor::From<float>({3}, {10, 20, 30}))),
              ElementsAre(11, 18, 33, 10.5f, 20, 29));
  EXPECT_THAT(Values(Div(a, Tensor::From<float>({2, 1}, {2, 4}))),
              ElementsAre(0.5f, -1, 1.5f, 0.125f, 0, -0.25f));
  EXPECT_THAT(Values(Minimum(a, Tensor::Scalar(0))), ElementsAre(0, -2, 0, 0, 0, -1));
  EXPECT_THAT(Values(Maximum(a, Tensor::Scalar(0))), ElementsAre(1, 0, 3, 0.5f, 0, 0));
  EXPECT_THAT(MessageOf([&] { Add(a, Tensor::Zeros({2})); }),
              HasSubstr("Add: [2, 3] F32, [2] F32"));
  EXPECT_THAT(MessageOf([&] { Mul(Tensor::Zeros({2}), a); }),
              HasSubstr("Mul: [2] F32, [2, 3] F32"));
  EXPECT_THAT(MessageOf([&] { Mul(a, Tensor::Zeros({2, 3}, DType::kInt64)); }), HasSubstr("I64"));
}

TEST(Ops, AffineClampAndSelect) {
  const Tensor a = Matrix();
  EXPECT_THAT(Values(Affine(a, 2, 1)), ElementsAre(3, -3, 7, 2, 1, -1));
  EXPECT_THAT(Values(Clamp(a, -1, 1)), ElementsAre(1, -1, 1, 0.5f, 0, -1));
  EXPECT_THAT(MessageOf([&] { Clamp(a, 1, -1); }), HasSubstr("between 1 and -1"));
  const Tensor mask = Tensor::From<uint8_t>({2, 3}, {1, 0, 1, 0, 1, 0});
  EXPECT_THAT(Values(Select(mask, a, Neg(a))), ElementsAre(1, 2, 3, -0.5f, 0, 1));
  EXPECT_THAT(MessageOf([&] { Select(a, a, a); }), HasSubstr("U8 mask"));
}

TEST(Ops, Reductions) {
  const Tensor a = Matrix();
  EXPECT_EQ(Sum(a).shape(), Shape{});
  EXPECT_EQ(Sum(a).Item(), 1.5);
  EXPECT_EQ(Mean(a).Item(), 0.25);
  EXPECT_THAT(Values(SumLast(a)), ElementsAre(2, -0.5f));
  EXPECT_THAT(Values(MaxLast(a)), ElementsAre(3, 0.5f));
  EXPECT_THAT(Indices(ArgMaxLast(a)), ElementsAre(2, 0));
  EXPECT_THAT(Indices(ArgMaxLast(Tensor::Full({1, 4}, 7))), ElementsAre(0));
  EXPECT_THAT(MessageOf([&] { Mean(Tensor::Zeros({0, 3})); }), HasSubstr("no elements"));
  EXPECT_THAT(MessageOf([&] { ArgMaxLast(Tensor::Zeros({2, 0})); }), HasSubstr("no elements"));
  EXPECT_THAT(MessageOf([&] { SumLast(Tensor::Scalar(1)); }), HasSubstr("rank >= 1"));
}

TEST(Ops, SoftmaxSurvivesLargeLogits) {
  const Tensor x = Tensor::From<float>({2, 2}, {1000, 1000, 0, std::log(3.0f)});
  EXPECT_THAT(Values(Softmax(x)), Near({0.5f, 0.5f, 0.25f, 0.75f}));
  EXPECT_THAT(Values(LogSoftmax(x)), Near({-0.6931472f, -0.6931472f, -1.3862944f, -0.2876821f}));
}

TEST(Ops, GathersCheckTheirIndices) {
  const Tensor a = Matrix();
  EXPECT_THAT(Values(GatherLast(a, Tensor::From<int64_t>({2}, {2, 0}))), ElementsAre(3, 0.5f));
  EXPECT_THAT(MessageOf([&] {
                GatherLast(a, Tensor::From<int64_t>({2}, {2, 3}));
              }),
              HasSubstr("index 3 in row 1"));
  EXPECT_THAT(MessageOf([&] {
                GatherLast(a, Tensor::From<int64_t>({3}, {0, 0, 0}));
              }),
              HasSubstr("[3] I64"));
  const Tensor rows = GatherRows(Tensor::From<uint8_t>({3, 2}, {1, 2, 3, 4, 5, 6}),
                                 Tensor::From<int64_t>({2}, {2, 0}));
  EXPECT_THAT(rows.data<uint8_t>(), ElementsAre(5, 6, 1, 2));
  EXPECT_EQ(GatherRows(Tensor::Zeros({0, 2}), Tensor::Zeros({0}, DType::kInt64)).shape(),
            Shape({0, 2}));
  EXPECT_THAT(MessageOf([&] { GatherRows(a, Tensor::From<int64_t>({1}, {-1})); }),
              HasSubstr("row -1"));
}

TEST(Ops, ConcatSliceStackAndReshape) {
  const Tensor a = Matrix(), b = Tensor::From<float>({2, 1}, {8, 9});
  const Tensor both[] = {a, b};
  EXPECT_THAT(Values(ConcatLast(both)), ElementsAre(1, -2, 3, 8, 0.5f, 0, -1, 9));
  const Tensor twice[] = {b, b};
  EXPECT_EQ(StackRows(twice).shape(), Shape({2, 2, 1}));
  EXPECT_THAT(Values(StackRows(twice)), ElementsAre(8, 9, 8, 9));
  EXPECT_THAT(Values(SliceLast(a, 1, 3)), ElementsAre(-2, 3, 0, -1));
  EXPECT_THAT(Values(SliceRows(a, 1, 2)), ElementsAre(0.5f, 0, -1));
  EXPECT_EQ(Reshape(a, {3, 2}).raw(), a.raw());
  const Tensor wrong[] = {a, Tensor::Zeros({3, 3})};
  EXPECT_THAT(MessageOf([&] { ConcatLast(wrong); }), HasSubstr("[2, 3] F32, [3, 3] F32"));
  EXPECT_THAT(MessageOf([&] { StackRows(wrong); }), HasSubstr("[2, 3] F32, [3, 3] F32"));
  EXPECT_THAT(MessageOf([&] { StackRows({}); }), HasSubstr("nothing"));
  EXPECT_THAT(MessageOf([&] { SliceLast(a, 2, 4); }), HasSubstr("[2, 4) of [2, 3]"));
}

TEST(Ops, LayerNormCentresAndScalesRows) {
  const Tensor x = Tensor::From<float>({1, 4}, {1, 2, 3, 4});
  const Tensor y = LayerNorm(x, Tensor::From<float>({4}, {1, 1, 1, 2}),
                             Tensor::From<float>({4}, {0, 0, 0, 5}), 0);
  EXPECT_THAT(Values(y), Near({-1.3416408f, -0.4472136f, 0.4472136f, 7.6832816f}));
  EXPECT_THAT(MessageOf([&] { LayerNorm(x, Tensor::Zeros({3}), Tensor::Zeros({4})); }),
              HasSubstr("[3] F32"));
}

TEST(Ops, CellsCheckTheirGates) {
  EXPECT_THAT(MessageOf([&] {
                LstmCell(Tensor::Zeros({2, 3}), Tensor::Zeros({2, 1}));
              }),
              HasSubstr("[B, 4H]"));
  EXPECT_THAT(MessageOf([&] {
                GruCell(Tensor::Zeros({2, 3}), Tensor::Zeros({2, 4}), Tensor::Zeros({2, 1}));
              }),
              HasSubstr("[B, 3H]"));
}

TEST(Ops, CastConvertsOrSaysWhatDoesNotFit) {
  const Tensor x = Tensor::From<double>({3}, {1, -2, 0.1});
  EXPECT_THAT(Values(Cast(x, DType::kFloat32)), ElementsAre(1, -2, 0.1f));
  EXPECT_THAT(Values(Cast(Tensor::From<uint8_t>({2}, {0, 255}), DType::kFloat32)),
              ElementsAre(0, 255));
  EXPECT_THAT(Values(Cast(Tensor::From<int64_t>({1}, {-7}), DType::kFloat32)), ElementsAre(-7));
  const Tensor half = Cast(Tensor::From<float>({2}, {1.00390625f, 1.01171875f}), DType::kBFloat16);
  EXPECT_THAT(Values(Cast(half, DType::kFloat32)), ElementsAre(1, 1.015625f));
  EXPECT_THAT(Indices(Cast(Tensor::From<float>({2}, {3, -4}), DType::kInt64)), ElementsAre(3, -4));
  EXPECT_THAT(MessageOf([&] { Cast(Tensor::Scalar(256), DType::kUInt8); }),
              HasSubstr("256 does not fit in U8"));
  EXPECT_THAT(MessageOf([&] { Cast(Tensor::Scalar(NAN), DType::kInt64); }),
              HasSubstr("does not fit in I64"));
  EXPECT_THAT(
      MessageOf([&] { Cast(Tensor::Scalar(std::ldexp(1.0, 63), DType::kFloat64), DType::kInt64); }),
      HasSubstr("does not fit"));
}

}  // namespace
}  // namespace weft
