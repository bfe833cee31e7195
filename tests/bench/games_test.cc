#include "bench/games.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(BenchGames, PlaysOneGameByItsId) {
  const auto figures = BenchGames("TicTacToe-v0");
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_EQ(figures[0].id, "TicTacToe-v0");
  EXPECT_GT(figures[0].moves_per_second, 1e4);
  EXPECT_GE(figures[0].moves_per_second, figures[0].low);
  EXPECT_LE(figures[0].moves_per_second, figures[0].high);
}

}  // namespace
}  // namespace weft
