// Every op's gradient against central differences (gradient_check.h), and of the plan against the
// interpreter.
#include <gtest/gtest.h>

#include "tests/tensor/gradient_check.h"

namespace weft {
namespace {

using Inputs = std::span<const Tensor>;

TEST(OpsGradient, DenseWithEveryActivation) {
  for (const Activation activation :
       {Activation::kNone, Activation::kTanh, Activation::kSigmoid, Activation::kRelu}) {
    SCOPED_TRACE(Name(activation));
    // Seeds at which no pre-activation is within 0.04 of the kink of relu.
    ExpectGradients({Random({3, 4}, 1), RandomWeight(4, 5, 2), Tensor::Full({5}, 3)},
                    [=](Inputs p) { return Dense(p[0], p[1], p[2], activation); });
  }
}

TEST(OpsGradient, DenseReluPassesOnlyWhereItIsPositive) {
  const Tensor x = Tensor::From<float>({1, 2}, {1, 1});
  const Tensor w = Tensor::From<float>({2, 2}, {1, -1, 1, -1}).ToLayout(Layout::kPanels);
  ExpectGradients({x, w}, [](Inputs p) { return Dense(p[0], p[1], Tensor(), Activation::kRelu); });
}

TEST(OpsGradient, DenseOverLeadingDimensionsAndWithoutBias) {
  ExpectGradients({Random({2, 2, 3}, 3), RandomWeight(3, 2, 4)},
                  [](Inputs p) { return Dense(p[0], p[1], Tensor()); });
}

TEST(OpsGradient, DenseBiasAlone) {
  const Tensor x = Random({300, 3}, 5), w = RandomWeight(3, 2, 6);
  ExpectGradients(
      {Random({2}, 7)}, [&](Inputs p) { return Dense(x, w, p[0], Activation::kTanh); }, 2e-3);
}

TEST(OpsGradient, DenseWeightSharedByTwoLayersOfDifferentBias) {
  const Tensor x = Random({4, 3}, 8);
  ExpectGradients({RandomWeight(3, 3, 9), Random({3}, 10), Random({3}, 11)}, [&](Inputs p) {
    return Dense(Dense(x, p[0], p[1], Activation::kTanh), p[0], p[2], Activation::kTanh);
  });
}

TEST(OpsGradient, Conv2d) {
  ExpectGradients({Random({2, 2, 4, 4}, 12), RandomWeight(2 * 2 * 2, 3, 13), Random({3}, 14)},
                  [](Inputs p) { return Conv2d(p[0], p[1], p[2], 2, 1, 1, Activation::kTanh); });
  ExpectGradients({Random({1, 1, 5, 5}, 15), RandomWeight(9, 2, 16)},
                  [](Inputs p) { return Conv2d(p[0], p[1], Tensor(), 3, 2, 0); });
}

TEST(OpsGradient, UnaryOps) {
  for (int op = 0; op <= static_cast<int>(Unary::kCos); ++op) {
    SCOPED_TRACE(op);
    // Away from zero on both sides where the op allows it, positive where it must be.
    const auto unary = static_cast<Unary>(op);
    const bool positive =
        unary == Unary::kLog || unary == Unary::kSqrt || unary == Unary::kReciprocal;
    const Tensor x = positive ? Random({6}, 17, 1, 2)
                              : Tensor::From<float>({6}, {-2, -0.7f, -0.1f, 0.1f, 0.9f, 1.5f});
    ExpectGradients({x}, [=](Inputs p) { return Apply(unary, p[0]); });
  }
}

TEST(OpsGradient, DerivativesAtKinksAreThoseOfTorch) {
  const std::vector<Tensor> zero = {Tensor::Zeros({1})};
  EXPECT_EQ(GradientsOf(
                zero, [](Inputs p) { return Sum(Relu(p[0])); }, true)[0]
                .Item(),
            0);
  EXPECT_EQ(GradientsOf(
                zero, [](Inputs p) { return Sum(Abs(p[0])); }, true)[0]
                .Item(),
            0);
  EXPECT_EQ(GradientsOf(
                zero, [](Inputs p) { return Sum(Clamp(p[0], 0, 1)); }, true)[0]
                .Item(),
            1);
  EXPECT_EQ(GradientsOf(
                zero, [](Inputs p) { return Sum(Minimum(p[0], Tensor::Zeros({1}))); }, true)[0]
                .Item(),
            0.5);
}

TEST(OpsGradient, BinaryOpsWithEveryBroadcast) {
  const Tensor a = Random({3, 4}, 18, 1, 2);
  // 0.5 apart in both directions, so that minimum and maximum have no kink near.
  const Tensor below = Affine(a, 1, -0.5f), above = Affine(a, 1, 0.5f);
  for (int op = 0; op <= static_cast<int>(Binary::kMaximum); ++op) {
    SCOPED_TRACE(op);
    const Loss binary = [=](Inputs p) { return Apply(static_cast<Binary>(op), p[0], p[1]); };
    ExpectGradients({a, below}, binary);
    ExpectGradients({a, above}, binary);
    ExpectGradients({a, Tensor::From<float>({1}, {0.7f})}, binary);
    ExpectGradients({a, Tensor::From<float>({4}, {0.7f, 2.5f, 0.8f, 2.6f})}, binary);
    ExpectGradients({a, Tensor::From<float>({3, 1}, {0.7f, 2.5f, 0.8f})}, binary);
  }
}

TEST(OpsGradient, BinaryOpsOfAValueWithItself) {
  for (const Binary op : {Binary::kAdd, Binary::kSubtract, Binary::kMultiply, Binary::kDivide}) {
    ExpectGradients({Random({5}, 19, 1, 2)}, [=](Inputs p) { return Apply(op, p[0], p[0]); });
  }
}

TEST(OpsGradient, AffineClampSelect) {
  ExpectGradients({Random({5}, 20)}, [](Inputs p) { return Affine(p[0], -3, 2); });
  ExpectGradients({Random({5}, 20)}, [](Inputs p) { return Shift(p[0], 2); });
  ExpectGradients({Tensor::From<float>({4}, {-2, -0.3f, 0.4f, 2})},
                  [](Inputs p) { return Clamp(p[0], -1, 1); });
  const Tensor mask = Tensor::From<uint8_t>({4}, {1, 0, 2, 0});
  ExpectGradients({Random({4}, 21), Random({4}, 22)},
                  [&](Inputs p) { return Select(mask, p[0], p[1]); });
  ExpectGradients({Random({4}, 21)}, [&](Inputs p) { return Select(mask, p[0], Square(p[0])); });
}

TEST(OpsGradient, Reductions) {
  const Tensor x = Random({3, 4}, 23);
  ExpectGradients({x}, [](Inputs p) { return Sum(Square(p[0])); });
  ExpectGradients({x}, [](Inputs p) { return Mean(Square(p[0])); });
  ExpectGradients({x}, [](Inputs p) { return SumLast(Square(p[0])); });
  ExpectGradients({x}, [](Inputs p) { return Mul(p[0], Reshape(SumLast(p[0]), {3, 1})); });
  ExpectGradients({x}, [](Inputs p) { return Add(Mul(p[0], Sum(p[0])), Mean(p[0])); });
}

TEST(OpsGradient, SoftmaxFamily) {
  ExpectGradients({Random({3, 5}, 24, -2, 2)}, [](Inputs p) { return Softmax(p[0]); });
  ExpectGradients({Random({3, 5}, 25, -2, 2)}, [](Inputs p) { return LogSoftmax(p[0]); });
  ExpectGradients({Random({3, 5}, 26, -2, 2)},
                  [](Inputs p) { return Mul(Softmax(p[0]), LogSoftmax(p[0])); });
}

TEST(OpsGradient, GatherLastScattersAndAdds) {
  const Tensor index = Tensor::From<int64_t>({3}, {2, 0, 2});
  ExpectGradients({Random({3, 4}, 27)}, [&](Inputs p) { return GatherLast(p[0], index); });
  ExpectGradients({Random({3, 4}, 28)},
                  [&](Inputs p) { return Add(GatherLast(p[0], index), GatherLast(p[0], index)); });
}

TEST(OpsGradient, ConcatSliceStackReshapeCast) {
  ExpectGradients({Random({2, 3}, 29), Random({2, 1}, 30)}, [](Inputs p) {
    const Tensor parts[] = {p[0], p[1], p[0]};
    return Tanh(ConcatLast(parts));
  });
  ExpectGradients({Random({2, 3}, 31), Random({2, 3}, 32)}, [](Inputs p) {
    const Tensor parts[] = {p[0], p[1], p[0]};
    return Tanh(StackRows(parts));
  });
  ExpectGradients({Random({2, 5}, 33)},
                  [](Inputs p) { return Mul(SliceLast(p[0], 1, 4), SliceLast(p[0], 2, 5)); });
  ExpectGradients({Random({4, 2}, 34)},
                  [](Inputs p) { return Mul(SliceRows(p[0], 0, 3), SliceRows(p[0], 1, 4)); });
  ExpectGradients({Random({4, 2}, 35)}, [](Inputs p) {
    return Reshape(Mul(Reshape(p[0], {8}), Reshape(p[0], {8})), {2, 4});
  });
}

TEST(OpsGradient, LayerNorm) {
  ExpectGradients({Random({3, 5}, 36), Random({5}, 37), Random({5}, 38)},
                  [](Inputs p) { return LayerNorm(p[0], p[1], p[2]); });
  // gamma and beta used twice: their gradients are written by the kernel and added.
  ExpectGradients(
      {Random({3, 5}, 39), Random({5}, 40), Random({5}, 41)},
      [](Inputs p) { return LayerNorm(Tanh(LayerNorm(p[0], p[1], p[2])), p[1], p[2]); }, 2e-3);
}

TEST(OpsGradient, LstmCell) {
  const std::vector<Tensor> inputs = {Random({2, 12}, 42), Random({2, 3}, 43)};
  ExpectGradients(inputs, [](Inputs p) { return LstmCell(p[0], p[1]).first; });
  ExpectGradients(inputs, [](Inputs p) { return LstmCell(p[0], p[1]).second; });
  ExpectGradients(inputs, [](Inputs p) {
    const auto [h, c] = LstmCell(p[0], p[1]);
    const auto [h2, c2] = LstmCell(p[0], c);
    return Add(Mul(h2, h), c2);
  });
}

TEST(OpsGradient, GruCell) {
  ExpectGradients({Random({2, 9}, 44), Random({2, 9}, 45), Random({2, 3}, 46)},
                  [](Inputs p) { return GruCell(p[0], p[1], GruCell(p[0], p[1], p[2])); });
}

TEST(OpsGradient, CastToBFloat16PassesTheGradient) {
  const auto gradient = GradientsOf(
      {Random({4}, 47)},
      [](Inputs p) { return Sum(Scale(Cast(Cast(p[0], DType::kBFloat16), DType::kFloat32), 3)); },
      true);
  for (const float value : gradient[0].data<float>()) EXPECT_EQ(value, 3);
}

}  // namespace
}  // namespace weft
