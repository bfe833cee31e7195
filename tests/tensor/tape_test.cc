#include "tensor/tape.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "tests/tensor/gradient_check.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

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

TEST(Tape, GradientOfAProductIsTheOtherFactor) {
  std::vector<Tensor> p = {Tensor::Scalar(3), Tensor::Scalar(5)};
  Tape tape(Handles(p));
  const Tape::Recording recording(tape);
  const auto gradients = tape.Gradient(Mul(p[0], p[1]), p);
  EXPECT_EQ(gradients[0].Item(), 5);
  EXPECT_EQ(gradients[1].Item(), 3);
}

TEST(Tape, UntrackedInputsLeaveNoTrace) {
  std::vector<Tensor> p = {Tensor::Scalar(3)};
  Tape tape(Handles(p));
  const Tensor before = Square(p[0]);
  EXPECT_EQ(before.node(), -1) << "nothing records outside a recording";
  const Tape::Recording recording(tape);
  EXPECT_EQ(Square(Tensor::Scalar(2)).node(), -1);
  EXPECT_EQ(Square(p[0].Detach()).node(), -1);
  EXPECT_EQ(Square(p[0].Clone()).node(), -1);
  EXPECT_NE(Square(p[0]).node(), -1);
}

TEST(Tape, ParametersThatTheLossDoesNotReachGetZeros) {
  std::vector<Tensor> p = {Tensor::Scalar(3), Tensor::From<float>({3}, {1, 2, 3})};
  Tape tape(Handles(p));
  for (const bool plan : {true, false}) {
    const Context context{.plan = plan};
    const ContextScope scope(context);
    const Tape::Recording recording(tape);
    tape.Gradient(Sum(Square(p[1])), p);
    const auto gradients = tape.Gradient(Square(p[0]), p);
    EXPECT_EQ(gradients[0].Item(), 6);
    for (const float value : gradients[1].data<float>()) EXPECT_EQ(value, 0);
  }
}

TEST(Tape, ParametersNotAskedForAreConstants) {
  std::vector<Tensor> p = {Tensor::Scalar(3), Tensor::Scalar(5)};
  Tape tape(Handles(p));
  const Tape::Recording recording(tape);
  const Tensor loss = Mul(p[0], p[1]);
  const Tensor asked[] = {p[1]};
  const auto gradients = tape.Gradient(loss, asked);
  ASSERT_EQ(gradients.size(), 1u);
  EXPECT_EQ(gradients[0].Item(), 3);
}

TEST(Tape, ALossThatIsAParameterHasGradientOne) {
  std::vector<Tensor> p = {Tensor::Scalar(3), Tensor::Scalar(5)};
  ExpectPlanEqualsInterpreter(p, [](std::span<const Tensor> q) { return q[1]; });
  EXPECT_EQ(GradientsOf(
                p, [](std::span<const Tensor> q) { return q[1]; }, true)[1]
                .Item(),
            1);
}

TEST(Tape, SeveralGradientsOfOneRecordingKeepTheirValues) {
  std::vector<Tensor> p = {Tensor::Scalar(3), Tensor::Scalar(5)};
  Tape tape(Handles(p));
  const Tape::Recording recording(tape);
  const Tensor first[] = {p[0]}, second[] = {p[1]};
  const Tensor shared = Mul(p[0], p[1]);
  const auto a = tape.Gradient(Square(shared), first);
  const auto b = tape.Gradient(shared, second);
  EXPECT_EQ(a[0].Item(), 150);  // 2 * 15 * 5
  EXPECT_EQ(b[0].Item(), 3);
}

TEST(Tape, HandlesOfAnEarlierRecordingAreConstants) {
  std::vector<Tensor> p = {Tensor::Scalar(3)};
  Tape tape(Handles(p));
  Tensor state;
  {
    const Tape::Recording recording(tape);
    state = Square(p[0]);
  }
  const Tape::Recording recording(tape);
  const auto gradients = tape.Gradient(Mul(p[0], state), p);
  EXPECT_EQ(gradients[0].Item(), 9);
  EXPECT_THAT(MessageOf([&] { tape.Gradient(state, p); }), HasSubstr("earlier recording"));
}

TEST(Tape, AnInnerRecordingOfAnotherTapeTakesOver) {
  std::vector<Tensor> p = {Tensor::Scalar(3)}, q = {Tensor::Scalar(4)};
  Tape outer(Handles(p)), inner(Handles(q));
  const Tape::Recording recording(outer);
  {
    const Tape::Recording nested(inner);
    const auto gradients = inner.Gradient(Mul(q[0], p[0]), q);
    EXPECT_EQ(gradients[0].Item(), 3);
  }
  EXPECT_EQ(outer.Gradient(Mul(q[0], p[0]), p)[0].Item(), 4);
}

TEST(Tape, GradientNamesWhatIsWrongWithItsArguments) {
  std::vector<Tensor> p = {Tensor::From<float>({2}, {1, 2})};
  Tape tape(Handles(p));
  const Tape::Recording recording(tape);
  EXPECT_THAT(MessageOf([&] { tape.Gradient(Square(p[0]), p); }), HasSubstr("loss of shape [2]"));
  EXPECT_THAT(MessageOf([&] { tape.Gradient(Tensor::Scalar(1), p); }),
              HasSubstr("not on the current recording"));
  const std::vector<Tensor> stranger = {Tensor::Scalar(1)};
  EXPECT_THAT(MessageOf([&] { tape.Gradient(Sum(p[0]), stranger); }),
              HasSubstr("does not track parameter 0, []"));
  const std::vector<Tensor> twice = {p[0], p[0]};
  EXPECT_THAT(MessageOf([&] { tape.Gradient(Sum(p[0]), twice); }), HasSubstr("asked for twice"));
  std::vector<Tensor> integers = {Tensor::Zeros({2}, DType::kInt64)};
  EXPECT_THAT(MessageOf([&] { Tape wrong(Handles(integers)); }), HasSubstr("f32"));
}

TEST(Tape, CompilesOncePerStructure) {
  std::vector<Tensor> p = {Random({4}, 1)};
  Tape tape(Handles(p));
  const auto step = [&](float scale, int depth) {
    const Tape::Recording recording(tape);
    Tensor y = Scale(p[0], scale);
    for (int i = 0; i < depth; ++i) y = Tanh(y);
    return tape.Gradient(Sum(y), p)[0].Clone();
  };
  const Tensor first = step(2, 1);
  const Tensor second = step(4, 1);  // another number, the same structure
  EXPECT_EQ(tape.statistics().plans_compiled, 1);
  EXPECT_EQ(tape.statistics().plan_hits, 1);
  EXPECT_NE(first.data<float>()[0], second.data<float>()[0]);
  step(2, 2);
  EXPECT_EQ(tape.statistics().plans_compiled, 2);
  EXPECT_TRUE(SameBits(step(2, 1), first));
  EXPECT_EQ(tape.statistics().plans_compiled, 2);
}

TEST(Tape, ShapesAttributesAndInputsAreStructure) {
  std::vector<Tensor> p = {Random({6}, 1), Random({6}, 2)};
  Tape tape(Handles(p));
  const std::vector<Loss> losses = {
      [](std::span<const Tensor> q) { return Sum(Mul(q[0], q[1])); },
      [](std::span<const Tensor> q) { return Sum(Mul(q[1], q[0])); },
      [](std::span<const Tensor> q) { return Sum(Div(q[0], q[1])); },
      [](std::span<const Tensor> q) { return Mean(Mul(q[0], q[1])); },
      [](std::span<const Tensor> q) { return Sum(SliceLast(Mul(q[0], q[1]), 0, 3)); },
      [](std::span<const Tensor> q) { return Sum(SliceLast(Mul(q[0], q[1]), 1, 4)); },
      [](std::span<const Tensor> q) { return Sum(Affine(Mul(q[0], q[1]), 1, 2)); },
      [](std::span<const Tensor> q) { return Sum(Affine(Mul(q[0], q[1]), 2, 1)); },
  };
  for (int round = 0; round < 2; ++round) {
    for (const Loss& loss : losses) {
      const Tape::Recording recording(tape);
      const auto gradients = tape.Gradient(loss(p), p);
      const auto expected = GradientsOf({p[0].Clone(), p[1].Clone()}, loss, false);
      EXPECT_TRUE(SameBits(gradients[0], expected[0]) && SameBits(gradients[1], expected[1]));
    }
  }
  EXPECT_EQ(tape.statistics().plans_compiled, static_cast<int64_t>(losses.size()));
}

// Stride and padding do not enter the hash; both give four patches of four pixels.
TEST(Tape, TellsStructuresOfEqualHashApart) {
  std::vector<Tensor> p = {Random({1, 1, 4, 4}, 1)};
  const Tensor w = RandomWeight(4, 2, 2);
  const Loss wide = [&](std::span<const Tensor> q) {
    return Sum(Conv2d(q[0], w, Tensor(), 2, 3, 1));
  };
  const Loss narrow = [&](std::span<const Tensor> q) {
    return Sum(Conv2d(q[0], w, Tensor(), 2, 2, 0));
  };
  Tape tape(Handles(p));
  for (const Loss& loss : {narrow, wide, narrow, wide}) {
    const Tape::Recording recording(tape);
    EXPECT_TRUE(
        SameBits(tape.Gradient(loss(p), p)[0], GradientsOf({p[0].Clone()}, loss, false)[0]));
  }
  EXPECT_EQ(tape.statistics().plans_compiled, 2);
}

TEST(Tape, KeepsAtMost64PlansAndDropsTheOneNotUsedLongest) {
  std::vector<Tensor> p = {Random({100}, 1)};
  Tape tape(Handles(p));
  const auto step = [&](int64_t count) {
    const Tape::Recording recording(tape);
    tape.Gradient(Sum(SliceLast(p[0], 0, count)), p);
  };
  for (int64_t count = 1; count <= 64; ++count) step(count);
  step(1);   // hit: now the latest
  step(65);  // pushes out 2
  EXPECT_EQ(tape.statistics().plans_compiled, 65);
  step(1);
  EXPECT_EQ(tape.statistics().plans_compiled, 65);
  step(2);
  EXPECT_EQ(tape.statistics().plans_compiled, 66);
}

TEST(Tape, FlatGradientHoldsAllAtMultiplesOf16) {
  std::vector<Tensor> p = {RandomWeight(3, 5, 1), Random({5}, 2), Random({1}, 3)};
  const Tensor block = JoinMemory(Handles(p));
  Tape tape(Handles(p));
  EXPECT_THAT(MessageOf([&] { tape.FlatGradient(); }), HasSubstr("before"));
  const Tape::Recording recording(tape);
  const auto gradients = tape.Gradient(Sum(Mul(Dense(Random({2, 3}, 4), p[0], p[1]), p[2])), p);
  const Tensor& flat = tape.FlatGradient();
  EXPECT_EQ(flat.shape(), block.shape());
  EXPECT_EQ(flat.elements(), 48 + 16 + 16);
  double sum = 0, parts = 0;
  for (const float value : flat.data<float>()) sum += value;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(gradients[i].raw() - flat.raw(), p[i].raw() - block.raw());
    for (const float value : gradients[i].data<float>()) parts += value;
  }
  EXPECT_DOUBLE_EQ(sum, parts) << "the gaps are not zero";
}

TEST(Tape, NamesTheFirstOpThatIsNotFinite) {
  std::vector<Tensor> p = {Tensor::From<float>({2}, {1, 2})};
  Tape tape(Handles(p));
  const Tape::Recording recording(tape);
  const Tensor y = Shift(p[0], -1);  // 0 and 1
  EXPECT_EQ(tape.FirstNonFinite(), "");
  Sum(Square(Log(y)));
  EXPECT_EQ(tape.FirstNonFinite(), "Log, node 1");
}

TEST(Tape, NamesAConstantInputThatIsNotFinite) {
  std::vector<Tensor> p = {RandomWeight(2, 2, 1)};
  Tape tape(Handles(p));
  {
    const Tape::Recording recording(tape);
    const Tensor x = Tensor::From<float>({1, 2}, {1, std::numeric_limits<float>::infinity()});
    Dense(x, p[0], Tensor());
    EXPECT_EQ(tape.FirstNonFinite(), "Dense, node 0, whose constant input is not finite");
  }
  p[0].data<float>()[1] = std::numeric_limits<float>::quiet_NaN();
  const Tape::Recording recording(tape);
  Dense(Random({1, 2}, 2), p[0], Tensor());
  EXPECT_EQ(tape.FirstNonFinite(), "parameter 0 [2, 2]");
}

}  // namespace
}  // namespace weft
