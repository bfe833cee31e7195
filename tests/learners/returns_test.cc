#include "learners/returns.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "environments/environment.h"

namespace weft {
namespace {

constexpr uint8_t kF = static_cast<uint8_t>(StepType::kFirst),
                  kM = static_cast<uint8_t>(StepType::kMid),
                  kL = static_cast<uint8_t>(StepType::kLast);

// Steps 0..5 of one row: an episode that ends at step 2 (truncated or terminated), the autoreset
// step 3, and two more.
RolloutSteps TwoEpisodes(float end_discount) {
  return {.value = Tensor::From<float>({6, 1}, {1, 2, 4, 8, 16, 32}),
          .reward = Tensor::From<float>({5, 1}, {1, 1, 1000, 1, 1}),
          .discount = Tensor::From<float>({5, 1}, {1, end_discount, 1, 1, 1}),
          .type = Tensor::From<uint8_t>({6, 1}, {kF, kM, kL, kF, kM, kM})};
}

void ExpectValues(const Tensor& tensor, const std::vector<double>& expected) {
  const auto values = tensor.data<float>();
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-5) << i;
}

TEST(Gae, TruncationBootstrapsFromTheFinalObservation) {
  // gamma = lambda = 1/2. delta_0 = 1 + 1 - 1 = 1, delta_1 = 1 + 2 - 2 = 1 (value 4 of the final
  // observation); the dummy transition 2 is masked; delta_3 = 1 + 8 - 8 = 1, delta_4 = 1 + 16 - 16
  // = 1.
  const Advantages result = GeneralisedAdvantages(TwoEpisodes(1), 0.5, 0.5);
  ExpectValues(result.advantage, {1.25, 1, 0, 1.25, 1});
  ExpectValues(result.returns, {2.25, 3, 4, 9.25, 17});
  ExpectValues(result.valid, {1, 1, 0, 1, 1});
}

TEST(Gae, TerminationDoesNotBootstrap) {
  const Advantages result = GeneralisedAdvantages(TwoEpisodes(0), 0.5, 0.5);
  // delta_1 = 1 + 0 - 2 = -1, A_0 = 1 - 1/4.
  ExpectValues(result.advantage, {0.75, -1, 0, 1.25, 1});
}

TEST(Gae, RewardAndValueOfTheDummyTransitionDoNotMatter) {
  RolloutSteps steps = TwoEpisodes(1);
  const Advantages before = GeneralisedAdvantages(steps, 0.9, 0.8);
  steps.reward.data<float>()[2] = -7;
  steps.discount.data<float>()[2] = 0;
  const Advantages after = GeneralisedAdvantages(steps, 0.9, 0.8);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(before.advantage.data<float>()[i], after.advantage.data<float>()[i]);
    EXPECT_EQ(before.returns.data<float>()[i], after.returns.data<float>()[i]);
  }
}

// Row 0 belongs to an agent that leaves at step 1 while the agent of row 1 goes on to step 3.
TEST(Gae, StepsOfAnAgentThatHasLeftAreDummies) {
  constexpr auto kFirst = static_cast<uint8_t>(StepType::kFirst);
  constexpr auto kMid = static_cast<uint8_t>(StepType::kMid);
  constexpr auto kLast = static_cast<uint8_t>(StepType::kLast);
  const RolloutSteps steps{
      .value = Tensor::From<float>({5, 2}, {4, 4, 50, 0, 60, 0, 70, 0, 8, 8}),
      .reward = Tensor::From<float>({4, 2}, {1, 1, 0, 1, 0, 1, 0, 0}),
      .discount = Tensor::From<float>({4, 2}, {0, 1, 1, 1, 1, 0, 1, 1}),
      .type = Tensor::From<uint8_t>(
          {5, 2}, {kFirst, kFirst, kLast, kMid, kLast, kMid, kLast, kLast, kFirst, kFirst})};
  const Advantages advantages = GeneralisedAdvantages(steps, 1, 1);
  EXPECT_THAT(advantages.valid.data<float>(), testing::ElementsAre(1, 1, 0, 1, 0, 1, 0, 0));
  EXPECT_THAT(advantages.advantage.data<float>(),
              testing::ElementsAre(1 - 4, 3 - 4, 0, 2, 0, 1, 0, 0));
}

RolloutSteps RandomRollout(int64_t time, int64_t rows, uint64_t seed) {
  Rng rng(seed, Purpose::kTest);
  RolloutSteps steps{Tensor::Empty({time + 1, rows}), Tensor::Empty({time, rows}),
                     Tensor::Empty({time, rows}), Tensor::Empty({time + 1, rows}, DType::kUInt8)};
  for (float& value : steps.value.data<float>()) value = static_cast<float>(rng.Normal());
  for (float& reward : steps.reward.data<float>()) reward = static_cast<float>(rng.Normal());
  auto type = steps.type.data<uint8_t>();
  for (int64_t n = 0; n < rows; ++n) {
    for (int64_t t = 0; t <= time; ++t) {
      const auto i = static_cast<size_t>(t * rows + n);
      const bool after_end = t > 0 && type[i - static_cast<size_t>(rows)] == kL;
      type[i] = after_end ? kF : rng.Below(5) == 0 ? kL : kM;
      if (t == 0) continue;
      const bool terminal = type[i] == kL && rng.Below(2) == 0;
      steps.discount.data<float>()[i - static_cast<size_t>(rows)] = terminal ? 0 : 1;
    }
  }
  return steps;
}

// Sums of rewards and the bootstrap, straight from the definition.
double MonteCarlo(const RolloutSteps& steps, int64_t t, int64_t n, double gamma, int64_t limit) {
  const int64_t rows = steps.reward.dim(1), time = steps.reward.dim(0);
  double sum = 0, weight = 1;
  int64_t k = t;
  for (; k < time && k - t < limit; ++k) {
    const auto i = static_cast<size_t>(k * rows + n);
    sum += weight * steps.reward.data<float>()[i];
    weight *= gamma * steps.discount.data<float>()[i];
    if (steps.type.data<uint8_t>()[i + static_cast<size_t>(rows)] == kL) {
      ++k;
      break;
    }
  }
  return sum + weight * steps.value.data<float>()[static_cast<size_t>(k * rows + n)];
}

TEST(Returns, EqualTheirDefinitions) {
  const RolloutSteps steps = RandomRollout(30, 7, 1);
  const Tensor discounted = DiscountedReturns(steps, 0.95);
  const Advantages monte_carlo = GeneralisedAdvantages(steps, 0.95, 1.0);
  for (const int64_t limit : {1, 3, 100}) {
    const NStepReturns n_step = ComputeNStepReturns(steps, 0.95, limit);
    for (int64_t t = 0; t < 30; ++t) {
      for (int64_t n = 0; n < 7; ++n) {
        const auto i = static_cast<size_t>(t * 7 + n);
        if (steps.type.data<uint8_t>()[i] == kL) {
          EXPECT_EQ(n_step.length.data<int64_t>()[i], 0);
          EXPECT_EQ(monte_carlo.valid.data<float>()[i], 0);
          continue;
        }
        EXPECT_NEAR(n_step.returns.data<float>()[i], MonteCarlo(steps, t, n, 0.95, limit), 1e-5);
        if (limit < 100) continue;
        EXPECT_NEAR(discounted.data<float>()[i], MonteCarlo(steps, t, n, 0.95, limit), 1e-5);
        EXPECT_NEAR(monte_carlo.returns.data<float>()[i], discounted.data<float>()[i], 1e-5);
      }
    }
  }
}

TEST(Returns, LambdaReturnsAreAdvantagesPlusValues) {
  const RolloutSteps steps = RandomRollout(30, 7, 2);
  for (const double lambda : {0.0, 0.5, 0.95, 1.0}) {
    const Advantages advantages = GeneralisedAdvantages(steps, 0.99, lambda);
    const Tensor returns = LambdaReturns(steps, 0.99, lambda);
    for (size_t i = 0; i < 30 * 7; ++i) {
      EXPECT_NEAR(returns.data<float>()[i], advantages.returns.data<float>()[i], 1e-5);
    }
  }
}

TEST(Returns, ARowDoesNotDependOnItsNeighbours) {
  const RolloutSteps all = RandomRollout(20, 5, 3);
  const Advantages together = GeneralisedAdvantages(all, 0.99, 0.95);
  for (int64_t n = 0; n < 5; ++n) {
    RolloutSteps one{Tensor::Empty({21, 1}), Tensor::Empty({20, 1}), Tensor::Empty({20, 1}),
                     Tensor::Empty({21, 1}, DType::kUInt8)};
    for (int64_t t = 0; t <= 20; ++t) {
      const auto from = static_cast<size_t>(t * 5 + n), to = static_cast<size_t>(t);
      one.value.data<float>()[to] = all.value.data<float>()[from];
      one.type.data<uint8_t>()[to] = all.type.data<uint8_t>()[from];
      if (t == 20) break;
      one.reward.data<float>()[to] = all.reward.data<float>()[from];
      one.discount.data<float>()[to] = all.discount.data<float>()[from];
    }
    const Advantages alone = GeneralisedAdvantages(one, 0.99, 0.95);
    for (int64_t t = 0; t < 20; ++t) {
      EXPECT_EQ(alone.advantage.data<float>()[static_cast<size_t>(t)],
                together.advantage.data<float>()[static_cast<size_t>(t * 5 + n)]);
    }
  }
}

TEST(Returns, ShapesThatDoNotFitAreNamed) {
  RolloutSteps steps = TwoEpisodes(1);
  steps.value = Tensor::Zeros({5, 1});
  try {
    GeneralisedAdvantages(steps, 0.99, 0.95);
    FAIL() << "accepted values without the last step";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("value"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace weft
