// When a run says that its rewards are exploited.
#include "rlhf/reward_monitor.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

// Steps at which it warned of a gold reward, whose noise is +-0.02.
std::vector<int> Warnings(RewardMonitor& monitor, int steps, double sum_slope, double gold_slope) {
  std::vector<int> warned;
  for (int step = 0; step < steps; ++step) {
    const double noise = step % 2 == 0 ? 0.02 : -0.02;
    const std::string warning = monitor.Add(sum_slope * step, {0.5 + gold_slope * step + noise});
    if (warning.empty()) continue;
    EXPECT_NE(warning.find("gold"), std::string::npos);
    warned.push_back(step);
  }
  return warned;
}

TEST(RewardMonitor, WarnsOnceWhenTheSumRisesAndTheWatchedRewardFalls) {
  RewardMonitor monitor({"gold"});
  // The last ten steps are below the first ten by 0.01 (steps - 10); four errors of means of ten
  // with a deviation of 0.02 (and 0.03 of the slope) are about 0.06.
  const std::vector<int> warned = Warnings(monitor, 60, 0.01, -0.01);
  ASSERT_EQ(warned.size(), 1u);
  EXPECT_EQ(warned[0], 19);
}

TEST(RewardMonitor, IsQuietWhereBothRiseOrBothFallOrNothingChanges) {
  for (const auto& [sum, gold] : {std::pair{0.01, 0.01}, std::pair{-0.01, -0.01},
                                  std::pair{0.0, 0.0}, std::pair{0.01, 0.0}}) {
    RewardMonitor monitor({"gold"});
    EXPECT_TRUE(Warnings(monitor, 60, sum, gold).empty()) << sum << " " << gold;
  }
}

TEST(RewardMonitor, GoesOnFromWhatItSaved) {
  RewardMonitor first({"gold"}), second({"gold"});
  EXPECT_TRUE(Warnings(first, 15, 0.01, -0.01).empty());
  second.Load(first.Save());
  RewardMonitor whole({"gold"});
  Warnings(whole, 15, 0.01, -0.01);
  for (int step = 0; step < 20; ++step) {
    EXPECT_EQ(second.Add(1, {0.1}), whole.Add(1, {0.1})) << step;
  }
}

TEST(RewardMonitor, BeginsAnewWithOtherRewards) {
  RewardMonitor one({"gold"}), two({"gold", "length"});
  EXPECT_EQ(Warnings(one, 60, 0.01, -0.01).size(), 1u);
  two.Load(one.Save());
  int warned = 0;
  for (int step = 0; step < 60; ++step) {
    const double noise = step % 2 == 0 ? 0.02 : -0.02;
    warned += !two.Add(0.01 * step, {0.5 - 0.01 * step + noise, 1}).empty();
  }
  EXPECT_EQ(warned, 1);
}

}  // namespace
}  // namespace weft
