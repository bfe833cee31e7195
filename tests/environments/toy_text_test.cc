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
