#include <gtest/gtest.h>
#include <set>
#include <string>

#include "base/check.h"
#include "base/config.h"
#include "environments/environment_row.h"

namespace weft {
namespace {

EnvironmentRow Make(const std::string& id, const std::string& arguments = "{}") {
  const EnvironmentEntry& entry = Environments().At(id);
  const auto config = entry.make_arguments();
  ConfigSource::Text(arguments, "test").Parse(*config);
  return EnvironmentRow(entry.make(*config));
}

// The sum of rewards until the episode ends or the actions do.
double Return(EnvironmentRow& row, const std::string& actions) {
  Rng rng(1, Purpose::kTest);
  row.Reset(rng);
  double sum = 0;
  for (const char letter : actions) {
    if (row.type() == StepType::kLast) break;
    const int64_t action = letter - '0';
    row.Step({&action, DType::kInt64}, rng);
    sum += row.reward();
  }
  return sum;
}

TEST(FrozenLake, ReachesTheGoalOnFirmIce) {
  EnvironmentRow row = Make("FrozenLake-v1", "{is_slippery: false}");
  EXPECT_EQ(Return(row, "112122"), 1);
  EXPECT_EQ(row.type(), StepType::kLast);
  EXPECT_EQ(row.discount(), 0);
  EXPECT_EQ(row.Observation(), std::vector<double>{15});
  EXPECT_EQ(Return(row, "21"), 0);  // into the hole at row 1, column 1
  EXPECT_EQ(row.Observation(), std::vector<double>{5});
  EXPECT_EQ(row.discount(), 0);
}

TEST(CliffWalking, TakesThirteenStepsAlongTheEdge) {
  EnvironmentRow row = Make("CliffWalking-v1");
  EXPECT_EQ(Return(row, "0111111111112"), -13);
  EXPECT_EQ(row.discount(), 0);
  EXPECT_EQ(Return(row, "1"), -100);  // over the edge, and back to the start
  EXPECT_EQ(row.Observation(), std::vector<double>{36});
  EXPECT_EQ(row.type(), StepType::kMid);
}

// The taxi at the red stand with its passenger, who wants to the green one: ((0 * 5 + 0) * 5 + 0) *
// 4 + 1.
constexpr double kAtRed = 1;

TEST(Taxi, DeliversAPassenger) {
  EnvironmentRow row = Make("Taxi-v4");
  Rng rng(1, Purpose::kTest);
  row.SetState(std::vector<double>{kAtRed, 0});
  double sum = 0;
  // Pick up, south twice, east four times, north twice, drop off.
  for (const int64_t action : {4, 0, 0, 2, 2, 2, 2, 1, 1, 5}) {
    EXPECT_EQ(row.discount(), 1);
    row.Step({&action, DType::kInt64}, rng);
    sum += row.reward();
  }
  EXPECT_EQ(sum, 20 - 9);
  EXPECT_EQ(row.discount(), 0);
}

TEST(Taxi, MasksWhatChangesNothing) {
  EnvironmentRow row = Make("Taxi-v4", "{action_mask: true}");
  row.SetState(std::vector<double>{kAtRed, 0});
  // South and east are open, the passenger can be picked up.
  EXPECT_EQ(row.Observation(), (std::vector<double>{kAtRed, 1, 0, 1, 0, 1, 0}));
}

TEST(Taxi, AFicklePassengerChangesTheDestinationOnce) {
  EnvironmentRow row = Make("Taxi-v4", "{fickle_passenger: true, fickle_probability: 1}");
  Rng rng(1, Purpose::kTest);
  std::set<int> destinations;
  for (int i = 0; i < 50; ++i) {
    row.Reset(rng);
    EXPECT_EQ(row.State()[1], 1);
    row.SetState(std::vector<double>{kAtRed, 1});
    const auto destination = [&] { return static_cast<int>(row.Observation()[0]) % 4; };
    for (const int64_t action : {0, 1, 4, 1}) {  // no passenger, and then no move
      row.Step({&action, DType::kInt64}, rng);
      EXPECT_EQ(destination(), 1);
    }
    int64_t south = 0;
    row.Step({&south, DType::kInt64}, rng);
    const int chosen = destination();
    destinations.insert(chosen);
    row.Step({&south, DType::kInt64}, rng);
    EXPECT_EQ(destination(), chosen);
  }
  EXPECT_EQ(destinations, (std::set<int>{0, 2, 3}));
}

TEST(Taxi, AFicklePassengerIsSoWithItsProbability) {
  EnvironmentRow row = Make("Taxi-v4", "{fickle_passenger: true}");
  Rng rng(1, Purpose::kTest);
  int fickle = 0;
  for (int i = 0; i < 2000; ++i) {
    row.Reset(rng);
    fickle += row.State()[1] != 0;
  }
  EXPECT_NEAR(fickle, 600, 100);  // five standard deviations
}

// An ace and a ten against a nine and a seven, then the cards given.
double Payout(const std::string& rules, int64_t action, double next) {
  EnvironmentRow row = Make("Blackjack-v1", rules);
  Rng rng(1, Purpose::kTest);
  row.SetState(std::vector<double>{11, 2, 1, 16, 2, 0, 9, next, next});
  row.Step({&action, DType::kInt64}, rng);
  return row.reward();
}

TEST(Blackjack, PaysNaturalsByTheRules) {
  EXPECT_EQ(Payout("{sab: true}", 0, 5), 1);  // the dealer has 21 of three cards
  EXPECT_EQ(Payout("{sab: false}", 0, 5), 0);
  EXPECT_EQ(Payout("{sab: false, natural: true}", 0, 5), 0);
  EXPECT_EQ(Payout("{sab: false, natural: true}", 0, 4), 1.5);
  EXPECT_EQ(Payout("{sab: true, natural: true}", 0, 4), 1);
}

TEST(Blackjack, KeepsTheNextCardsWithItsState) {
  EnvironmentRow row = Make("Blackjack-v1");
  Rng rng(1, Purpose::kTest);
  const int64_t hit = 1;
  row.SetState(std::vector<double>{5, 2, 0, 16, 2, 0, 9, 2, 3});
  row.Step({&hit, DType::kInt64}, rng);
  EXPECT_EQ(row.State(), (std::vector<double>{7, 3, 0, 16, 2, 0, 9, 3}));
  EXPECT_EQ(row.Observation(), (std::vector<double>{7, 9, 0}));
  EXPECT_THROW(row.SetState(std::vector<double>{5, 2, 0, 16, 2, 0, 9, 11}), Error);
  EXPECT_THROW(row.SetState(std::vector<double>{5, 2, 0}), Error);
}

TEST(FrozenLake, StartsOnEveryStart) {
  EnvironmentRow row = Make("FrozenLake-v1", "{desc: [SFS, HGS]}");
  Rng rng(1, Purpose::kTest);
  std::set<double> starts;
  for (int i = 0; i < 100; ++i) {
    row.Reset(rng);
    starts.insert(row.Observation()[0]);
  }
  EXPECT_EQ(starts, (std::set<double>{0, 2, 5}));
}

TEST(FrozenLake, RefusesWhatIsNoMap) {
  for (const char* bad : {"{desc: [SF, F]}", "{desc: [SX]}", "{desc: [FG]}", "{desc: ['']}",
                          "{map_name: 5x5}", "{success_rate: 1.5}", "{reward_schedule: [1]}"}) {
    EXPECT_THROW(Make("FrozenLake-v1", bad), Error) << bad;
  }
}

}  // namespace
}  // namespace weft
