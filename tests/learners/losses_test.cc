#include "learners/losses.h"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "base/check.h"
#include "tensor/ops.h"

namespace weft {
namespace {

void ExpectValues(const Tensor& tensor, const std::vector<double>& expected) {
  const auto values = tensor.data<float>();
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-5) << i;
}

Tensor Row(std::initializer_list<float> values) {
  return Tensor::From<float>({static_cast<int64_t>(values.size())}, values);
}

TEST(MeanWeights, PartsOfAStepAddUpToTheWholeMean) {
  const Tensor x = Row({1, 2, 3, 4, 5}), valid = Row({1, 0, 1, 1, 0});
  const double whole = WeightedSum(x, MeanWeights(valid, 5, 3)).Item();
  EXPECT_NEAR(whole, (1 + 3 + 4) / 3.0, 1e-6);
  double parts = 0;
  for (const auto& [begin, end] : {std::pair{0, 1}, {1, 4}, {4, 5}}) {
    parts += WeightedSum(x.Slice(begin, end), MeanWeights(valid.Slice(begin, end), end - begin, 3))
                 .Item();
  }
  EXPECT_NEAR(parts, whole, 1e-6);
  ExpectValues(MeanWeights({}, 2, 8), {0.125, 0.125});
  ExpectValues(MeanWeights(Row({0, 0}), 2, 0), {0, 0});
}

TEST(ClippedSurrogate, TakesTheWorseOfBothSidesForEachSignOfTheAdvantage) {
  // Ratios 1, 1.5, 0.5, 1.5, 0.5 with clip 0.2.
  const Tensor old_log_prob = Row({-1, -1, -1, -1, -1});
  const float up = -1 + std::log(1.5f), down = -1 + std::log(0.5f);
  const Surrogate policy =
      ClippedSurrogate(Row({-1, up, down, up, down}), old_log_prob, Row({2, 2, 2, -2, -2}), 0.2);
  ExpectValues(policy.ratio, {1, 1.5, 0.5, 1.5, 0.5});
  ExpectValues(policy.loss, {-2, -2.4, -1, 3, 1.6});
}

TEST(ClippedSurrogate, TheDualClipBoundsRowsOfNegativeAdvantageOnly) {
  const float far = std::log(10.0f);
  const Surrogate policy = ClippedSurrogate(Row({far, far}), Row({0, 0}), Row({1, -1}), 0.2, 3.0);
  ExpectValues(policy.loss, {-1.2, 3});
  EXPECT_THROW(ClippedSurrogate(Row({0}), Row({0}), Row({1}), 0.2, 0.5), Error);
}

TEST(ValueLoss, IsHalfTheSquaredErrorAndTheLargerOneWhenClipped) {
  const Tensor value = Row({3, 3}), returns = Row({1, 2.4f}), old_value = Row({2, 2});
  ExpectValues(ValueLoss(value, returns), {2, 0.18});
  // V clipped to 2.5: errors 1.5 and 0.1; the unclipped 2 and 0.6 are larger.
  ExpectValues(ValueLoss(value, returns, old_value, 0.5), {2, 0.18});
  // Returns beyond the clipped value: its error 1.5 is larger than 1.
  ExpectValues(ValueLoss(Row({3}), Row({4}), Row({2}), 0.5), {1.125});
}

TEST(NormaliseAdvantages, HasMeanZeroAndUnbiasedDeviationOneOverTheValidRows) {
  const Tensor result = NormaliseAdvantages(Row({1, 100, 2, 3}), Row({1, 0, 1, 1}));
  ExpectValues(result, {-1, 0, 0, 1});
}

// A last minibatch of a single row must not become NaN (its deviation is 0 / 0).
TEST(NormaliseAdvantages, LeavesFewerThanTwoValidRowsAlone) {
  ExpectValues(NormaliseAdvantages(Row({5}), {}), {5});
  ExpectValues(NormaliseAdvantages(Row({5, 7}), Row({0, 1})), {5, 7});
  ExpectValues(NormaliseAdvantages(Row({5, 7}), Row({0, 0})), {5, 7});
  ExpectValues(NormaliseAdvantages(Row({4, 4}), {}), {0, 0});
}

TEST(MeasureDivergence, CountsValidRowsOnly) {
  const Surrogate policy =
      ClippedSurrogate(Row({std::log(1.5f), 9, 0}), Row({0, 0, 0}), Row({1, 1, 1}), 0.2);
  const PolicyDivergence result = MeasureDivergence(policy, Row({1, 0, 1}), 0.2);
  EXPECT_NEAR(result.kl_k1, -std::log(1.5) / 2, 1e-6);
  EXPECT_NEAR(result.kl_k3, (0.5 - std::log(1.5)) / 2, 1e-6);
  EXPECT_EQ(result.clip_fraction, 0.5);
  EXPECT_EQ(MeasureDivergence(policy, Row({0, 0, 0}), 0.2).kl_k1, 0);
}

TEST(ExplainedVariance, IsOneForAPerfectCriticAndZeroForAConstantOne) {
  const Tensor returns = Row({1, 2, 3, 9});
  EXPECT_EQ(ExplainedVariance(returns, returns), 1);
  EXPECT_EQ(ExplainedVariance(Row({5, 5, 5, 5}), returns), 0);
  EXPECT_NEAR(ExplainedVariance(Row({1, 2, 4, 0}), returns, Row({1, 1, 1, 0})), 1 - (2.0 / 3) / 2,
              1e-6);
  EXPECT_EQ(ExplainedVariance(Row({1, 2}), Row({4, 4})), 0) << "returns that do not vary";
}

TEST(DqnTarget, DoubleLearningTakesTheOnlineArgmaxAndTheLowestIndexOfTies) {
  const Tensor target = Tensor::From<float>({3, 2}, {1, 5, 3, 2, 7, 8});
  const Tensor online = Tensor::From<float>({3, 2}, {2, 1, 0, 4, 6, 6});
  const Tensor reward = Row({1, 1, 1}), discount = Row({0.5, 0.5, 0});
  ExpectValues(DqnTarget(reward, discount, target), {3.5, 2.5, 1});
  ExpectValues(DqnTarget(reward, discount, target, online), {1.5, 2, 1});
  ExpectValues(DqnTarget(reward, Row({1, 1, 1}), target, online), {2, 3, 8});
}

TEST(HuberLoss, IsQuadraticWithinDeltaAndLinearBeyond) {
  ExpectValues(HuberLoss(Row({0, 0.5, -1, 3, -3})), {0, 0.125, 0.5, 2.5, 2.5});
  ExpectValues(HuberLoss(Row({1, -4}), 2), {0.5, 6});
  ExpectValues(SquaredLoss(Row({-3})), {9});
}

TEST(TdError, IsTheTakenActionLessTheTarget) {
  const Tensor q = Tensor::From<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  ExpectValues(TdError(q, Tensor::From<int64_t>({2}, {2, 0}), Row({1, 1})), {2, 3});
}

TEST(Sac, LossesAreThoseOfThePaperWorkedOutByHand) {
  const Tensor q1 = Row({1, 4}), q2 = Row({2, 3}), log_prob = Row({-1, 2}), alpha = Row({0.5});
  // min Q - alpha log pi: 1.5 and 2.
  ExpectValues(SacTarget(Row({1, 1}), Row({0.5, 0}), q1, q2, log_prob, alpha), {1.75, 1});
  ExpectValues(TwinCriticLoss(q1, q2, Row({2, 2})), {0.5, 2.5});
  ExpectValues(SacActorLoss(log_prob, q1, q2, alpha), {-1.5, -2});
  const Tensor weight = MeanWeights({}, 2, 2);
  // -log alpha (mean log pi + target entropy) = -0.7 (0.5 - 3).
  EXPECT_NEAR(TemperatureLoss(Row({0.7f}), log_prob, weight, -3).Item(), 1.75, 1e-6);
}

}  // namespace
}  // namespace weft
