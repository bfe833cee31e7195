// What every registered game must hold, found by random play, and the rules of the small games.
#include "environments/boards/game.h"

#include <algorithm>
#include <cctype>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "allocation_count.h"
#include "base/random.h"
#include "environments/boards/connect_four.h"
#include "environments/boards/gomoku.h"
#include "environments/boards/tic_tac_toe.h"

namespace weft {
namespace {

std::unique_ptr<Game> Make(const std::string& id, const std::string& arguments = "{}") {
  const auto config = Environments().At(id).make_arguments();
  ConfigSource::Text(arguments, "test").Parse(*config);
  return Games().At(id).make(*config);
}

std::vector<Move> Legal(const Game& game) {
  std::vector<Move> moves(static_cast<size_t>(game.Spec().actions));
  moves.resize(static_cast<size_t>(game.LegalMoves(moves)));
  return moves;
}

std::vector<uint8_t> Planes(const Game& game) {
  std::vector<uint8_t> planes(static_cast<size_t>(game.Spec().planes.elements()), 7);
  game.Observe(planes);
  return planes;
}

// All that can be seen of a position.
struct Seen {
  int to_move;
  bool over;
  std::vector<double> outcomes;
  std::vector<Move> legal, moves;
  std::vector<uint8_t> planes;
  uint64_t hash;
  std::string text;
  bool operator==(const Seen&) const = default;
};
Seen Look(const Game& game) {
  const auto moves = game.Moves();
  return {.to_move = game.ToMove(),
          .over = game.Over(),
          .outcomes = {game.Outcome(0), game.Outcome(1)},
          .legal = Legal(game),
          .moves = {moves.begin(), moves.end()},
          .planes = Planes(game),
          .hash = game.Hash(),
          .text = game.Text()};
}

Move Random(const Game& game, Rng& rng) {
  const std::vector<Move> moves = Legal(game);
  return moves[rng.Below(moves.size())];
}

class EveryGame : public testing::TestWithParam<std::string> {};

TEST_P(EveryGame, TakesBackEveryMoveExactly) {
  const auto game = Make(GetParam());
  Rng rng(1, Purpose::kTest);
  for (int round = 0; round < 3; ++round) {
    game->Start();
    std::vector<Seen> line = {Look(*game)};
    while (!game->Over()) {
      game->Play(Random(*game, rng));
      line.push_back(Look(*game));
      // A little to and fro on the way, so that what Undo restores is played on.
      if (rng.Below(4) > 0) continue;
      for (uint64_t back = rng.Below(std::min<uint64_t>(6, line.size())); back > 0; --back) {
        line.pop_back();
        game->Undo();
        ASSERT_EQ(Look(*game), line.back());
      }
    }
    while (line.size() > 1) {
      line.pop_back();
      game->Undo();
      ASSERT_EQ(Look(*game), line.back());
    }
  }
}

TEST_P(EveryGame, ListsExactlyTheLegalMovesAndEndsInTime) {
  const auto game = Make(GetParam());
  const GameSpec spec = game->Spec();
  Rng rng(2, Purpose::kTest);
  for (int round = 0; round < 3; ++round) {
    game->Start();
    for (int64_t played = 0;; ++played) {
      const std::vector<Move> legal = Legal(*game);
      std::vector<Move> found;
      for (Move move = 0; move < spec.actions; ++move) {
        if (game->IsLegal(move)) found.push_back(move);
      }
      ASSERT_EQ(legal, found);
      ASSERT_EQ(legal.empty(), game->Over());
      ASSERT_EQ(std::ssize(game->Moves()), played);
      ASSERT_LE(played, spec.longest);
      if (game->Over()) break;
      ASSERT_EQ(game->Outcome(0), 0);
      game->Play(legal[rng.Below(legal.size())]);
    }
    EXPECT_EQ(game->Outcome(0), -game->Outcome(1));
  }
}

TEST_P(EveryGame, CopiesAreEqualAndAlone) {
  const auto game = Make(GetParam()), other = Make(GetParam());
  Rng rng(3, Purpose::kTest);
  for (int i = 0; i < 6; ++i) game->Play(Random(*game, rng));
  other->Play(Legal(*other).back());
  const auto clone = game->Clone();
  other->CopyFrom(*game);
  const Seen before = Look(*game);
  EXPECT_EQ(Look(*clone), before);
  EXPECT_EQ(Look(*other), before);
  for (int i = 0; i < 3 && !clone->Over(); ++i) {
    clone->Play(Random(*clone, rng));
    other->Undo();
  }
  EXPECT_EQ(Look(*game), before);
  clone->Undo();
  EXPECT_NE(Look(*clone), before);
}

TEST_P(EveryGame, AllocatesNothing) {
  const auto game = Make(GetParam()), copy = Make(GetParam());
  const GameSpec spec = game->Spec();
  std::vector<Move> moves(static_cast<size_t>(spec.actions));
  std::vector<uint8_t> planes(static_cast<size_t>(spec.planes.elements()));
  Rng rng(4, Purpose::kTest);
  const int64_t before = AllocationCount();
  while (!game->Over()) {
    const auto count = static_cast<uint64_t>(game->LegalMoves(moves));
    game->Play(moves[rng.Below(count)]);
    game->Observe(planes);
    copy->CopyFrom(*game);
    copy->Undo();
  }
  game->Start();
  EXPECT_EQ(AllocationCount(), before);
}

TEST_P(EveryGame, KeepsItsRulesUnderEverySymmetry) {
  const auto game = Make(GetParam());
  const GameSpec spec = game->Spec();
  const auto cells = static_cast<size_t>(spec.planes[1] * spec.planes[2]);
  ASSERT_GE(spec.symmetries.size(), 2u);
  std::set<std::vector<int32_t>> distinct;
  Rng rng(5, Purpose::kTest);
  for (const Symmetry& symmetry : spec.symmetries) {
    distinct.insert(symmetry.cell);
    ASSERT_EQ(symmetry.cell.size(), cells);
    ASSERT_EQ(std::ssize(symmetry.move), spec.actions);
    const auto turned = Make(GetParam());
    game->Start();
    while (true) {
      std::vector<Move> legal = Legal(*game);
      for (Move& move : legal) move = symmetry.move[static_cast<size_t>(move)];
      std::ranges::sort(legal);
      ASSERT_EQ(Legal(*turned), legal);
      const std::vector<uint8_t> planes = Planes(*game);
      std::vector<uint8_t> expected(planes.size());
      TransformPlanes(symmetry, planes, expected);
      ASSERT_EQ(Planes(*turned), expected);
      ASSERT_EQ(turned->Outcome(0), game->Outcome(0));
      if (game->Over()) break;
      const Move move = Random(*game, rng);
      game->Play(move);
      turned->Play(symmetry.move[static_cast<size_t>(move)]);
    }
  }
  EXPECT_EQ(distinct.size(), spec.symmetries.size());
  for (size_t cell = 0; cell < cells; ++cell)
    ASSERT_EQ(spec.symmetries[0].cell[cell], static_cast<int32_t>(cell)) << "the identity is first";
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryGame, testing::ValuesIn(Games().Names()),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::erase_if(name, [](char c) { return std::isalnum(c) == 0; });
                           return name;
                         });

// Positions after all sequences of moves, by what Observe shows of them and by their hash.
void Visit(Game& game, std::map<std::vector<uint8_t>, uint64_t>& hashes, std::set<uint64_t>& all) {
  const auto [entry, fresh] = hashes.emplace(Planes(game), game.Hash());
  ASSERT_EQ(entry->second, game.Hash());
  if (!fresh) return;
  all.insert(game.Hash());
  for (const Move move : Legal(game)) {
    game.Play(move);
    Visit(game, hashes, all);
    game.Undo();
  }
}

TEST(TicTacToe, Has5478PositionsEachWithItsHash) {
  const auto game = Make("TicTacToe-v0");
  std::map<std::vector<uint8_t>, uint64_t> hashes;
  std::set<uint64_t> all;
  Visit(*game, hashes, all);
  EXPECT_EQ(hashes.size(), 5478u);  // counted in reference/environments, too
  EXPECT_EQ(all.size(), 5478u);
}

double PlayAll(Game& game, std::span<const Move> moves) {
  for (const Move move : moves) {
    EXPECT_TRUE(game.IsLegal(move)) << move << " in\n" << game.Text();
    game.Play(move);
  }
  return game.Outcome(0);
}

TEST(TicTacToe, ShowsItsBoard) {
  const auto game = Make("TicTacToe-v0");
  EXPECT_EQ(PlayAll(*game, std::vector<Move>{0, 4, 1, 8}), 0);
  EXPECT_EQ(game->Text(), "X X .\n. O .\n. . O\n");
  EXPECT_EQ(Planes(*game), (std::vector<uint8_t>{1, 1, 0, 0, 0, 0, 0, 0, 0,  //
                                                 0, 0, 0, 0, 1, 0, 0, 0, 1}));
  EXPECT_EQ(PlayAll(*game, std::vector<Move>{2}), 1);
}

TEST(ConnectFour, FindsFourInEveryDirection) {
  const auto game = Make("ConnectFour-v0");
  EXPECT_EQ(PlayAll(*game, std::vector<Move>{0, 1, 0, 1, 0, 1, 0}), 1) << "column";
  game->Start();
  EXPECT_EQ(PlayAll(*game, std::vector<Move>{0, 3, 0, 4, 1, 5, 1, 6}), -1) << "row";
  game->Start();
  EXPECT_EQ(PlayAll(*game, std::vector<Move>{0, 1, 1, 2, 2, 3, 2, 3, 3, 6, 3}), 1) << "diagonal";
  game->Start();
  EXPECT_EQ(PlayAll(*game, std::vector<Move>{6, 5, 5, 4, 4, 3, 4, 3, 3, 0, 3}), 1) << "diagonal";
  EXPECT_EQ(game->Text(),
            ". . . . . . .\n"
            ". . . . . . .\n"
            ". . . X . . .\n"
            ". . . X X . .\n"
            ". . . O X X .\n"
            "O . . O O O X\n"
            "0 1 2 3 4 5 6\n");
}

TEST(ConnectFour, DoesNotTakeTheEndOfAColumnForTheNextOne) {
  const auto game = Make("ConnectFour-v0");
  // Three stones of the first player at the top of column 0 and one at the bottom of column 1 are
  // neighbours as bits only.
  EXPECT_EQ(PlayAll(*game, std::vector<Move>{6, 0, 5, 0, 6, 0, 0, 5, 0, 6, 0, 5, 1}), 0);
  EXPECT_FALSE(game->Over());
  EXPECT_FALSE(game->IsLegal(0)) << "a full column";
}

TEST(Gomoku, WinsWithFiveOrMoreInEveryDirection) {
  const auto game = Make("Gomoku-v0");
  const auto cell = [](int row, int column) { return static_cast<Move>(15 * row + column); };
  constexpr int kDown[] = {0, 1, 1, 1}, kAcross[] = {1, 0, 1, -1};
  for (int i = 0; i < 4; ++i) {
    game->Start();
    const int column = kAcross[i] < 0 ? 14 : 0;
    for (const int step : {0, 1, 5, 3, 4}) {  // with a gap at 2
      game->Play(cell(step * kDown[i], column + step * kAcross[i]));
      game->Play(cell(13, 2 * step));
      ASSERT_FALSE(game->Over());
    }
    game->Play(cell(2 * kDown[i], column + 2 * kAcross[i]));  // six in a row
    EXPECT_TRUE(game->Over());
    EXPECT_EQ(game->Outcome(0), 1);
  }
  EXPECT_EQ(game->MoveText(cell(0, 0)), "A15");
  EXPECT_EQ(game->MoveText(cell(14, 14)), "P1");
}

TEST(Gomoku, RowsDoNotGoAroundTheEdge) {
  const auto game = Make("Gomoku-v0", "{size: 5}");
  // Black has the cells 2 to 6: the end of row 0 and the beginning of row 1.
  EXPECT_EQ(PlayAll(*game, std::vector<Move>{2, 10, 3, 11, 4, 12, 5, 13, 6}), 0);
  EXPECT_FALSE(game->Over());
  EXPECT_EQ(PlayAll(*game, std::vector<Move>{14}), -1);
  EXPECT_EQ(game->Text(),
            " 5 . . X X X\n"
            " 4 X X . . .\n"
            " 3 O O O O O\n"
            " 2 . . . . .\n"
            " 1 . . . . .\n"
            "   A B C D E\n");
}

}  // namespace
}  // namespace weft
