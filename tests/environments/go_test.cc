#include "environments/boards/go.h"

#include <gtest/gtest.h>
#include <set>
#include <sstream>

#include "base/random.h"

namespace weft {
namespace {

Go Make(int64_t size, double komi = 0, int64_t max_moves = 0) {
  Go::Arguments arguments("Go9x9-v0", size);
  arguments.komi = komi;
  arguments.max_moves = max_moves;
  return Go(arguments);
}

// Cells from their names; "pass" is one, too.
Move Named(const Go& game, const std::string& name) {
  for (Move move = 0; move < game.Spec().actions; ++move) {
    if (game.MoveText(move) == name) return move;
  }
  ADD_FAILURE() << "no cell " << name;
  return 0;
}

bool IsLegal(const Go& game, const std::string& name) {
  return game.IsLegal(Named(game, name));
}

void Play(Go& game, const std::string& names) {
  std::istringstream words(names);
  for (std::string name; words >> name;) {
    ASSERT_TRUE(IsLegal(game, name)) << name << " in\n" << game.Text();
    game.Play(Named(game, name));
  }
}

// Black and white place these stones in turn; passes fill the shorter list.
void Place(Go& game, std::vector<std::string> black, std::vector<std::string> white) {
  for (size_t i = 0; i < std::max(black.size(), white.size()); ++i) {
    Play(game, i < black.size() ? black[i] : "pass");
    Play(game, i < white.size() ? white[i] : "pass");
  }
}

TEST(GoRules, CapturesAChainInTheCornerAndOnTheEdge) {
  Go game = Make(5);
  Place(game, {"B5", "B4", "A3"}, {"A5", "A4", "E1"});
  EXPECT_EQ(game.Text(),
            " 5 . X . . .\n"
            " 4 . X . . .\n"
            " 3 X . . . .\n"
            " 2 . . . . .\n"
            " 1 . . . . O\n"
            "   A B C D E\n");
}

TEST(GoRules, CapturesSeveralChainsAtOnce) {
  Go game = Make(5);
  // C3 is the last liberty of three white stones.
  Place(game, {"C5", "B4", "D4", "A3", "E3", "B2", "D2"}, {"C4", "B3", "D3", "E1", "A1"});
  Play(game, "C3");
  EXPECT_EQ(game.board().Area(Stone::kBlack), 17);  // 8 stones, 3 captured, 6 around
  EXPECT_EQ(game.board().at(Named(game, "C4")), Stone::kEmpty);
  EXPECT_EQ(game.board().at(Named(game, "B3")), Stone::kEmpty);
  EXPECT_EQ(game.board().at(Named(game, "D3")), Stone::kEmpty);
}

TEST(GoRules, ForbidsSuicideOfOneStoneAndOfTwo) {
  Go one = Make(5);
  Place(one, {"B5", "A4"}, {"E1", "D1"});
  EXPECT_TRUE(IsLegal(one, "A5")) << "black joins its own stones";
  Play(one, "pass");
  EXPECT_FALSE(IsLegal(one, "A5")) << "a white stone without liberty";
  Go two = Make(5);
  Place(two, {"B5", "B4", "A3"}, {"A5", "E1", "D1"});
  EXPECT_TRUE(IsLegal(two, "A4")) << "black captures A5";
  Play(two, "pass");
  EXPECT_FALSE(IsLegal(two, "A4")) << "two white stones without liberty";
}

TEST(GoRules, AStoneWithoutLibertyIsLegalWhenItCaptures) {
  Go game = Make(5);
  Place(game, {"B5", "A4", "D1"}, {"C5", "B4", "A3"});
  Play(game, "pass A5");
  EXPECT_EQ(game.board().at(Named(game, "B5")), Stone::kEmpty);
  EXPECT_EQ(game.board().at(Named(game, "A4")), Stone::kEmpty);
}

// Black takes the ko at D3, white may not take back at once.
Go Ko() {
  Go game = Make(5);
  Place(game, {"C4", "B3", "C2"}, {"D4", "E3", "D2"});
  Play(game, "E1 C3 D3");
  return game;
}

TEST(GoRules, ForbidsTakingBackAKo) {
  Go game = Ko();
  EXPECT_EQ(game.board().at(Named(game, "C3")), Stone::kEmpty) << "captured";
  EXPECT_FALSE(IsLegal(game, "C3"));
  Play(game, "A1 A2");  // a threat and its answer
  EXPECT_TRUE(IsLegal(game, "C3")) << "the board is another one";
  Play(game, "C3");
  EXPECT_FALSE(IsLegal(game, "D3"));
}

TEST(GoRules, PassesEndTheGameAndTheLimitDoesToo) {
  Go game = Make(5, 0.5);
  Play(game, "pass");
  EXPECT_FALSE(game.Over());
  Play(game, "pass");
  EXPECT_TRUE(game.Over());
  EXPECT_EQ(game.Outcome(0), -1) << "komi decides";
  Go limited = Make(5, 0.5, 3);
  Play(limited, "C3 pass C2");
  EXPECT_TRUE(limited.Over());
  EXPECT_EQ(limited.Lead(), 24.5);
}

TEST(GoRules, CountsStonesAndSurroundedPointsButNotSharedOnes) {
  Go game = Make(5, 0);
  // Black holds column B, white column D; column C between them is shared, as in a seki.
  Place(game, {"B1", "B2", "B3", "B4", "B5"}, {"D1", "D2", "D3", "D4", "D5"});
  EXPECT_EQ(game.board().Area(Stone::kBlack), 10);
  EXPECT_EQ(game.board().Area(Stone::kWhite), 10);
  Play(game, "C3 C4 pass pass");
  EXPECT_EQ(game.Outcome(0), 0) << "11 and 11 points, and no komi";
  EXPECT_EQ(game.Outcome(1), 0);
}

TEST(GoRules, AnEmptyBoardBelongsToNobodyAndAWholeOneToItsStones) {
  Go game = Make(3);
  EXPECT_EQ(game.board().Area(Stone::kBlack), 0);
  Play(game, "B2");
  EXPECT_EQ(game.board().Area(Stone::kBlack), 9);
}

TEST(GoRules, ShowsEightPositionsAndTheColour) {
  Go game = Make(5);
  Place(game, {"B5", "A4"}, {"A5", "E1"});  // black's A4 captured A5
  std::vector<uint8_t> planes(17 * 25);
  game.Observe(planes);
  const auto plane = [&](size_t index) {
    std::string cells;
    for (Move cell = 0; cell < 25; ++cell) {
      if (planes[index * 25 + static_cast<size_t>(cell)] != 0) cells += game.MoveText(cell) + " ";
    }
    return cells;
  };
  EXPECT_EQ(plane(0), "B5 A4 ");
  EXPECT_EQ(plane(1), "E1 ");
  EXPECT_EQ(plane(2), "B5 A4 ");
  EXPECT_EQ(plane(3), "");
  EXPECT_EQ(plane(4), "B5 ");
  EXPECT_EQ(plane(5), "A5 ");
  EXPECT_EQ(plane(6), "B5 ");
  for (size_t i = 7; i < 16; ++i) EXPECT_EQ(plane(i), "") << i;
  EXPECT_EQ(std::count(planes.end() - 25, planes.end(), 1), 25) << "black is to move";
  Play(game, "pass");
  game.Observe(planes);
  EXPECT_EQ(plane(0), "E1 ");
  EXPECT_EQ(plane(2), "E1 ") << "before the pass";
  EXPECT_EQ(std::count(planes.end() - 25, planes.end(), 1), 0);
}

// A legal position is one in which every chain has a liberty. Stones are placed cell by cell; those
// of the other colour are passes, so that the colour can be chosen.
int64_t LegalPositions(Go& game, int cell) {
  if (cell == game.board().cells()) return 1;
  int64_t count = LegalPositions(game, cell + 1);
  for (const int player : {0, 1}) {
    const bool pass = game.ToMove() != player;
    if (pass) game.Play(static_cast<Move>(game.board().cells()));
    if (game.IsLegal(static_cast<Move>(cell))) {
      const int64_t before = game.board().placed();
      game.Play(static_cast<Move>(cell));
      bool captured = false;
      game.board().EachCaptured(before, [&](int) { captured = true; });
      if (!captured) count += LegalPositions(game, cell + 1);
      game.Undo();
    }
    if (pass) game.Undo();
  }
  return count;
}

TEST(GoRules, HasAsManyLegalPositionsAsPublished) {
  // Tromp and Farneback 2007, "Combinatorics of Go", table 1.
  Go two = Make(2, 0, 100), three = Make(3, 0, 100);
  EXPECT_EQ(LegalPositions(two, 0), 57);
  EXPECT_EQ(LegalPositions(three, 0), 12675);
}

// The rules once more, without chains, hashes or undo.
class SlowGo {
 public:
  explicit SlowGo(int size) : size_(size), board_(static_cast<size_t>(size * size), 0) {
    seen_.insert(board_);
  }

  // The board after a stone of `colour` (1 or 2), empty when it has no liberty.
  std::vector<int> After(int cell, int colour) const {
    std::vector<int> board = board_;
    if (board[static_cast<size_t>(cell)] != 0) return {};
    board[static_cast<size_t>(cell)] = colour;
    for (const int side : {3 - colour, colour}) {
      std::vector<int> dead;
      for (int i = 0; i < size_ * size_; ++i) {
        if (board[static_cast<size_t>(i)] == side && !Breathes(board, i)) dead.push_back(i);
      }
      if (side == colour && !dead.empty()) return {};
      for (const int i : dead) board[static_cast<size_t>(i)] = 0;
    }
    return board;
  }
  bool Legal(int cell, int colour) const {
    const std::vector<int> board = After(cell, colour);
    return !board.empty() && !seen_.contains(board);
  }
  void Play(int cell, int colour) {
    board_ = After(cell, colour);
    seen_.insert(board_);
  }
  const std::vector<int>& board() const { return board_; }

 private:
  bool Breathes(const std::vector<int>& board, int cell) const {
    std::vector<int> chain = {cell};
    std::set<int> found = {cell};
    for (size_t i = 0; i < chain.size(); ++i) {
      const int row = chain[i] / size_, column = chain[i] % size_;
      for (const auto& [r, c] : {std::pair{row - 1, column}, std::pair{row + 1, column},
                                 std::pair{row, column - 1}, std::pair{row, column + 1}}) {
        if (r < 0 || r >= size_ || c < 0 || c >= size_) continue;
        const int next = r * size_ + c;
        const int there = board[static_cast<size_t>(next)];
        if (there == 0) return true;
        if (there == board[static_cast<size_t>(cell)] && found.insert(next).second)
          chain.push_back(next);
      }
    }
    return false;
  }

  int size_;
  std::vector<int> board_;
  std::set<std::vector<int>> seen_;
};

// Random games, on small boards full of captures and repetitions, with moves taken back on the way.
TEST(GoRules, AgreesWithASlowTwin) {
  Rng rng(1, Purpose::kTest);
  int64_t superko = 0, captures = 0;
  for (int round = 0; round < 60; ++round) {
    const int size = 2 + round % 5;
    Go game = Make(size, 0, 150);
    SlowGo slow(size);
    std::vector<Move> moves(static_cast<size_t>(size * size + 1));
    while (!game.Over()) {
      const int colour = game.ToMove() + 1;
      for (int cell = 0; cell < size * size; ++cell) {
        const auto move = static_cast<Move>(cell);
        ASSERT_EQ(game.IsLegal(move), slow.Legal(cell, colour)) << game.MoveText(move) << " in\n"
                                                                << game.Text();
        superko += !game.IsLegal(move) && !slow.After(cell, colour).empty();
        ASSERT_EQ(static_cast<int>(game.board().at(cell)), slow.board()[static_cast<size_t>(cell)]);
      }
      const auto count = static_cast<uint64_t>(game.LegalMoves(moves));
      // Into the future and back.
      int ahead = 0;
      for (; ahead < 4 && !game.Over(); ++ahead) {
        std::vector<Move> next(moves.size());
        game.Play(next[rng.Below(static_cast<uint64_t>(game.LegalMoves(next)))]);
      }
      for (; ahead > 0; --ahead) game.Undo();
      const Move move = moves[count > 1 ? rng.Below(count - 1) : 0];  // passes only when it must
      const int64_t placed = game.board().placed();
      game.Play(move);
      if (move == size * size) continue;
      slow.Play(move, colour);
      game.board().EachCaptured(placed, [&](int) { ++captures; });
    }
  }
  EXPECT_GT(superko, 100);
  EXPECT_GT(captures, 1000);
}

}  // namespace
}  // namespace weft
