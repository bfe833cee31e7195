#include <gtest/gtest.h>

#include "base/check.h"
#include "base/config.h"
#include "environments/boards/opponent.h"
#include "environments/environment_row.h"

namespace weft {
namespace {

EnvironmentRow Make(const std::string& id, const std::string& arguments) {
  const EnvironmentEntry& entry = Environments().At(id);
  const auto config = entry.make_arguments();
  ConfigSource::Text(arguments, "test").Parse(*config);
  return EnvironmentRow(entry.make(*config));
}

void Step(EnvironmentRow& row, int64_t action, Rng& rng) {
  row.Step({&action, DType::kInt64}, rng);
}

TEST(GameEnvironment, RefusesAnIllegalMoveNamingIt) {
  EnvironmentRow row = Make("TicTacToe-v0", "{seat: first}");
  Rng rng(1, Purpose::kTest);
  row.Reset(rng);
  Step(row, 4, rng);
  try {
    Step(row, 4, rng);
    FAIL() << "the cell is taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    const std::string message = error.message();
    EXPECT_NE(message.find("TicTacToe-v0: the move 4 (row 1, column 1) is not legal"),
              std::string::npos)
        << message;
  }
}

TEST(GameEnvironment, LosesByAnIllegalMoveIfTold) {
  EnvironmentRow row = Make("ConnectFour-v0", "{seat: second, illegal_move: loses}");
  Rng rng(1, Purpose::kTest);
  row.Reset(rng);
  row.SetState(std::vector<double>{1, 0, 0, 0, 0, 0, 0, 3});  // column 0 is full
  EXPECT_EQ(row.Observation()[84], 0) << "the mask of column 0";
  Step(row, 0, rng);
  EXPECT_EQ(row.reward(), -1);
  EXPECT_EQ(row.discount(), 0);
  EXPECT_EQ(row.type(), StepType::kLast);
  const std::vector<double> state = row.State();
  row.SetState(state);
  EXPECT_EQ(row.State(), state);
}

TEST(GameEnvironment, RewardsTheOutcomeForTheSeatOfTheAgent) {
  EnvironmentRow row = Make("TicTacToe-v0", "{}");
  Rng rng(1, Purpose::kTest);
  // X has 0 and 1, O has 3 and 4; X wins with 2, O with 5.
  row.SetState(std::vector<double>{0, 0, 3, 1, 4});
  Step(row, 2, rng);
  EXPECT_EQ(row.reward(), 1);
  EXPECT_EQ(row.discount(), 0);
  row.SetState(std::vector<double>{1, 0, 3, 1, 4, 8});
  Step(row, 5, rng);
  EXPECT_EQ(row.reward(), 1);
  // One cell is left and nobody has a line.
  row.SetState(std::vector<double>{0, 0, 1, 2, 4, 3, 5, 7, 6});
  Step(row, 8, rng);
  EXPECT_EQ(row.reward(), 0);
  EXPECT_EQ(row.type(), StepType::kLast);
  // At the end every action is allowed, as it is ignored.
  const std::vector<double> observation = row.Observation();
  EXPECT_EQ(std::vector<double>(observation.begin() + 18, observation.end()),
            std::vector<double>(9, 1));
}

TEST(GameEnvironment, LosesWhenTheOpponentWins) {
  EnvironmentRow row = Make("TicTacToe-v0", "{}");
  int64_t losses = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng(seed, Purpose::kTest);
    row.SetState(std::vector<double>{0, 0, 6, 1, 7, 5, 3});
    Step(row, 4, rng);  // leaves 2 and 8, with which O completes 6, 7, 8
    if (row.type() != StepType::kLast) continue;
    EXPECT_EQ(row.reward(), -1);
    ++losses;
  }
  EXPECT_GT(losses, 5);
  EXPECT_LT(losses, 35);
}

TEST(GameEnvironment, DrawsTheSeatAndLetsTheOpponentBegin) {
  EnvironmentRow row = Make("Go9x9-v0", "{}");
  int64_t first = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed, Purpose::kTest);
    row.Reset(rng);
    const std::vector<double> state = row.State();
    EXPECT_EQ(state.size(), state[0] == 0 ? 1u : 2u) << "the opponent has moved";
    first += state[0] == 0;
  }
  EXPECT_NEAR(static_cast<double>(first), 100, 40);
}

TEST(GameEnvironment, RefusesASavedGameThatBreaksTheRules) {
  EnvironmentRow row = Make("TicTacToe-v0", "{}");
  EXPECT_THROW(row.SetState(std::vector<double>{0, 4, 4}), Error);
  EXPECT_THROW(row.SetState(std::vector<double>{0, 9}), Error);
  EXPECT_THROW(row.SetState(std::vector<double>{2}), Error);
  EXPECT_THROW(row.SetState(std::vector<double>{}), Error);
}

TEST(Opponents, RandomIsUniformOverTheLegalMoves) {
  EXPECT_EQ(Opponents().Names(), std::vector<std::string>{"random"});
  EnvironmentRow row = Make("TicTacToe-v0", "{seat: first}");
  std::vector<int> chosen(9);
  Rng rng(1, Purpose::kTest);
  for (int i = 0; i < 8000; ++i) {
    row.Reset(rng);
    Step(row, 0, rng);
    ++chosen[static_cast<size_t>(row.State()[2])];
  }
  EXPECT_EQ(chosen[0], 0);
  for (size_t cell = 1; cell < 9; ++cell) EXPECT_NEAR(chosen[cell], 1000, 150);  // five deviations
}

}  // namespace
}  // namespace weft
