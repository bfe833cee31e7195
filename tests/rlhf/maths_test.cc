// The mathematics of RLHF by hand where it is small; program/verify_maths.h compares it with the
// reference's values and gradients.
#include <gtest/gtest.h>
#include <vector>

#include "rlhf/advantages.h"
#include "rlhf/policy_losses.h"

namespace weft {
namespace {

using Values = std::vector<double>;

// Case 92 of faults that users met: values of every aggregation, worked by hand there.
TEST(TokenWeights, AggregateAsTheyAreNamedWhateverTheSplit) {
  // Two answers of 1 and 3 tokens.
  Responses responses;
  responses.Add(1);
  responses.Add(3);
  const Values loss = {2, 4, 6, 8};
  const auto total = [&](const Values& weights) {
    double sum = 0;
    for (size_t i = 0; i < loss.size(); ++i) sum += weights[i] * loss[i];
    return sum;
  };
  EXPECT_DOUBLE_EQ(total(TokenWeights(responses, Aggregation::kTokenMean)), 5);
  EXPECT_DOUBLE_EQ(total(TokenWeights(responses, Aggregation::kSequenceMeanTokenMean)), 4);
  EXPECT_DOUBLE_EQ(total(TokenWeights(responses, Aggregation::kSequenceMeanTokenSum)), 10);
  EXPECT_DOUBLE_EQ(total(TokenWeights(responses, Aggregation::kConstantLength, 5)), 2);
  Responses half;
  half.Add(3);
  const Values weights = TokenWeights(half, Aggregation::kTokenMean, 0, 2, 4);
  EXPECT_EQ(weights, Values(3, 0.25));
}

TEST(GroupAdvantages, EqualRewardsGiveNothing) {
  const Values advantages = GroupAdvantages(Values{0.1, 0.1, 0.1}, 3, GroupScale::kUnbiased, 1e-4);
  EXPECT_EQ(advantages, Values(3, 0.0));
}

TEST(TokenRewards, TheScoreLandsOnTheLastTokenAndSumsUp) {
  Responses responses;
  responses.Add(2);
  responses.Add(0);
  responses.Add(3);
  const Values old_log_p = {-1, -2, -1, -1, -3}, reference = {-1.5, -2, -1, -2, -3};
  const Values reward =
      TokenRewards(responses, old_log_p, reference, Values{4, 9, 2}, std::vector<uint8_t>{1, 1, 0},
                   {.beta = 0.5, .missing_eos_penalty = 1});
  EXPECT_EQ(reward, (Values{-0.25, 4, 0, -0.5, 1}));
}

}  // namespace
}  // namespace weft
