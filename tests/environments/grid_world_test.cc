#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/config.h"
#include "environments/environment_row.h"

namespace weft {
namespace {

constexpr size_t kCells = 7;  // where the cells of a state begin
constexpr double kEmpty = 1, kWall = 2, kDoor = 4, kKey = 5, kBall = 6, kGoal = 8, kLava = 9;
constexpr double kYellow = 4, kOpen = 0, kClosed = 1, kLocked = 2;
enum Action : int64_t { kLeft, kRight, kForward, kPickUp, kDrop, kToggle };

EnvironmentRow Make(const std::string& id, const std::string& arguments = "{}") {
  const EnvironmentEntry& entry = Environments().At(id);
  const auto config = entry.make_arguments();
  ConfigSource::Text(arguments, "test").Parse(*config);
  return EnvironmentRow(entry.make(*config));
}

void Act(EnvironmentRow& row, std::vector<int64_t> actions) {
  Rng rng(1, Purpose::kTest);
  for (const int64_t& action : actions) row.Step({&action, DType::kInt64}, rng);
}

// Object, colour and state of a cell of a 5 x 5 grid.
std::vector<double> Cell(const EnvironmentRow& row, size_t x, size_t y) {
  const std::vector<double> state = row.State();
  const auto* begin = state.data() + kCells + 3 * (5 * x + y);
  return {begin, begin + 3};
}

// A 5 x 5 room without walls; the agent at (1, 2) faces (2, 2) to the right, where `front` is.
std::vector<double> Room(std::vector<double> front, std::vector<double> carried = {0, 0, 0}) {
  std::vector<double> state{1, 2, 0};
  state.insert(state.end(), carried.begin(), carried.end());
  state.push_back(0);
  for (size_t cell = 0; cell < 25; ++cell) {
    const std::vector<double> empty{kEmpty, 0, 0};
    const std::vector<double>& code = cell == 2 * 5 + 2 ? front : empty;
    state.insert(state.end(), code.begin(), code.end());
  }
  return state;
}

TEST(GridWorld, RewardsASoonGoal) {
  EnvironmentRow row = Make("MiniGrid-Empty-5x5-v0");
  Rng rng(1, Purpose::kTest);
  row.Reset(rng);
  Act(row, {kForward, kForward, kRight, kForward});
  EXPECT_EQ(row.reward(), 0);
  EXPECT_EQ(row.discount(), 1);
  Act(row, {kForward});
  EXPECT_EQ(row.reward(), 1 - 0.9 * (5.0 / 100.0));
  EXPECT_EQ(row.discount(), 0);
  EXPECT_EQ(row.spec().time_limit, 100);
}

TEST(GridWorld, EndsWithoutRewardInLava) {
  EnvironmentRow row = Make("MiniGrid-LavaGapS5-v0");
  row.SetState(Room({kLava, 0, 0}));
  Act(row, {kForward});
  EXPECT_EQ(row.reward(), 0);
  EXPECT_EQ(row.type(), StepType::kLast);
  EXPECT_EQ(row.discount(), 0);
}

TEST(GridWorld, OpensDoorsWithTheirKeyOnly) {
  EnvironmentRow row = Make("MiniGrid-DoorKey-5x5-v0");
  const std::vector<double> locked{kDoor, kYellow, kLocked}, open{kDoor, kYellow, kOpen};
  row.SetState(Room(locked, {kKey, 0, 0}));
  Act(row, {kToggle, kForward});
  EXPECT_EQ(Cell(row, 2, 2), locked);
  EXPECT_EQ(row.State()[0], 1);  // in front of it
  row.SetState(Room(locked, {kKey, kYellow, 0}));
  Act(row, {kToggle});
  EXPECT_EQ(Cell(row, 2, 2), open);
  Act(row, {kToggle});
  EXPECT_EQ(Cell(row, 2, 2), (std::vector<double>{kDoor, kYellow, kClosed}));
  Act(row, {kToggle, kForward});
  EXPECT_EQ(row.State()[0], 2);
}

// Key and door of one colour; the agent next to the door with the key.
TEST(GridWorld, EndsWhenTheDoorIsUnlocked) {
  EnvironmentRow row = Make("MiniGrid-Unlock-v0");
  Rng rng(1, Purpose::kTest);
  row.Reset(rng);
  std::vector<double> state = row.State();
  for (size_t y = 1; y < 5; ++y) {
    const auto* door = state.data() + kCells + 3 * (6 * 5 + y);
    if (door[0] != kDoor) continue;
    const std::vector<double> beside{4, static_cast<double>(y), 0, kKey, door[1], 0, 9};
    std::copy(beside.begin(), beside.end(), state.begin());
  }
  row.SetState(state);
  Act(row, {kForward});
  EXPECT_EQ(row.type(), StepType::kMid);
  Act(row, {kToggle});
  EXPECT_EQ(row.discount(), 0);
  EXPECT_EQ(row.reward(), 1 - 0.9 * (11.0 / 288.0));
}

// At the end of the hallway of size 7: up is (5, 2), down is (5, 4).
TEST(GridWorld, RewardsTheObjectThatWasSeen) {
  EnvironmentRow row = Make("MiniGrid-MemoryS7-v0");
  Rng rng(1, Purpose::kTest);
  std::set<double> rewards;
  for (int i = 0; i < 40; ++i) {
    row.Reset(rng);
    std::vector<double> state = row.State();
    const auto object = [&](size_t x, size_t y) { return state[kCells + 3 * (7 * x + y)]; };
    const bool above = object(5, 1) == object(1, 2);
    EXPECT_NE(object(5, 1), object(5, 5));
    state[0] = 5;
    state[1] = 3;
    state[2] = 3;  // looking up
    row.SetState(state);
    Act(row, {kPickUp, kForward});
    EXPECT_EQ(row.discount(), 0);
    EXPECT_EQ(row.reward(), above ? 1 - 0.9 * (2.0 / 245.0) : 0);
    rewards.insert(row.reward());
  }
  EXPECT_EQ(rewards.size(), 2u);
}

TEST(GridWorld, CarriesOneObject) {
  EnvironmentRow row = Make("MiniGrid-DoorKey-5x5-v0");
  row.SetState(Room({kKey, kYellow, 0}));
  Act(row, {kForward, kPickUp});
  EXPECT_EQ(Cell(row, 2, 2), (std::vector<double>{kEmpty, 0, 0}));
  EXPECT_EQ(row.State()[3], kKey);
  const std::vector<double> image = row.Observation();
  EXPECT_EQ(image[(3 * 7 + 6) * 3], kKey);  // seen where the agent is
  Act(row, {kRight, kDrop});
  EXPECT_EQ(Cell(row, 1, 3), (std::vector<double>{kKey, kYellow, 0}));
  EXPECT_EQ(row.State()[3], 0);
  row.SetState(Room({kKey, kYellow, 0}, {kKey, 0, 0}));
  Act(row, {kPickUp, kDrop});
  EXPECT_EQ(row.State()[4], 0);
  EXPECT_EQ(Cell(row, 2, 2), (std::vector<double>{kKey, kYellow, 0}));
}

// The object that a task is about.
double Goal(const std::string& id) {
  return id == "MiniGrid-Unlock-v0" ? kKey : id.starts_with("MiniGrid-Memory") ? kBall : kGoal;
}

// Whether a walk from the agent reaches an object, through doors but not through lava.
bool Reaches(const std::vector<double>& state, int64_t width, int64_t height, double goal) {
  const auto object = [&](int64_t x, int64_t y) {
    return state[kCells + 3 * static_cast<size_t>(x * height + y)];
  };
  std::vector<uint8_t> seen(static_cast<size_t>(width * height));
  std::vector<std::pair<int64_t, int64_t>> open{
      {static_cast<int64_t>(state[0]), static_cast<int64_t>(state[1])}};
  while (!open.empty()) {
    const auto [x, y] = open.back();
    open.pop_back();
    if (x < 0 || x >= width || y < 0 || y >= height || seen[static_cast<size_t>(x * height + y)])
      continue;
    seen[static_cast<size_t>(x * height + y)] = 1;
    if (object(x, y) == goal) return true;
    if (object(x, y) == kWall || object(x, y) == kLava) continue;
    open.insert(open.end(), {{x + 1, y}, {x - 1, y}, {x, y + 1}, {x, y - 1}});
  }
  return false;
}

TEST(GridWorld, EveryLayoutCanBeSolved) {
  int environments = 0;
  for (const std::string& id : Environments().Names()) {
    if (!id.starts_with("MiniGrid-")) continue;
    ++environments;
    EnvironmentRow row = Make(id);
    Rng rng(1, Purpose::kTest);
    for (int i = 0; i < 100; ++i) {
      row.Reset(rng);
      const std::vector<double> state = row.State();
      const size_t cells = (state.size() - kCells) / 3;
      const bool unlock = id == "MiniGrid-Unlock-v0";
      const auto size = static_cast<int64_t>(std::lround(std::sqrt(cells)));
      ASSERT_TRUE(Reaches(state, unlock ? 11 : size, unlock ? 6 : size, Goal(id)))
          << id << ", layout " << i;
    }
  }
  EXPECT_EQ(environments, 25);
}

TEST(GridWorld, RefusesWhatIsNoGrid) {
  const std::pair<const char*, const char*> bad[] = {
      {"MiniGrid-Empty-5x5-v0", "{agent_view_size: 4}"},
      {"MiniGrid-Empty-5x5-v0", "{size: 3}"},
      {"MiniGrid-Empty-5x5-v0", "{agent_start_pos: [4, 1]}"},
      {"MiniGrid-Empty-5x5-v0", "{agent_start_pos: [1]}"},
      {"MiniGrid-DoorKey-5x5-v0", "{size: 4}"},
      {"MiniGrid-MultiRoom-N6-v0", "{maxNumRooms: 5}"}};
  for (const auto& [id, arguments] : bad) EXPECT_THROW(Make(id, arguments), Error) << arguments;

  EnvironmentRow row = Make("MiniGrid-DoorKey-5x5-v0");
  const std::vector<double> good = Room({kEmpty, 0, 0});
  for (const auto& [index, value] : {std::pair{0, 5.0}, {1, -1.0}, {2, 4.0}, {3, 11.0}, {9, 3.0}}) {
    std::vector<double> state = good;
    state[static_cast<size_t>(index)] = value;
    EXPECT_THROW(row.SetState(state), Error) << index;
  }
  EXPECT_THROW(row.SetState(std::vector<double>(7)), Error);
}

TEST(GridWorld, GivesUpOnRoomsThatDoNotFit) {
  EnvironmentRow row = Make("MiniGrid-MultiRoom-N6-v0",
                            "{width: 8, height: 8, minNumRooms: 20, maxNumRooms: 20}");
  Rng rng(1, Purpose::kTest);
  EXPECT_THROW(row.Reset(rng), Error);
}

}  // namespace
}  // namespace weft
