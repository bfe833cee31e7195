#include "environments/verify/verify_games.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"

namespace weft {
namespace {

class GameVerifier {
 public:
  GameVerifier(const Recording& recording, Game& game, Comparison& comparison)
      : recording_(recording), game_(game), spec_(game.Spec()), comparison_(comparison) {}

  void Run() {
    CheckSequences();
    if (recording_.Has("perft.moves")) CheckPerft();
    if (recording_.Has("solved.moves")) CheckSolved();
    if (recording_.Has("positions")) CheckPositions();
  }

 private:
  // The distinct positions after some moves: one way to each, one after the other, and the number
  // of ways.
  struct Level {
    std::vector<Move> moves;
    std::vector<double> ways;
  };
  // What is known of a value: it lies between these.
  struct Bounds {
    int8_t low = -1, high = 1;
  };

  void CheckSequences() {
    const int64_t depths = recording_.Rows("sequences");
    const int64_t distinct_depths =
        recording_.Has("distinct_positions") ? recording_.Rows("distinct_positions") : 0;
    Level level{.moves = {}, .ways = {1}};
    // Depth, sequences, and those that end there: won by the first, by the second, drawn.
    std::vector<double> found = {0, 1, 0, 0, 0};
    for (int64_t depth = 0;; ++depth) {
      comparison_.Check("sequences", found, recording_.Row("sequences", depth), 0);
      if (depth < distinct_depths) {
        const double positions[] = {static_cast<double>(depth),
                                    static_cast<double>(level.ways.size())};
        comparison_.Check("distinct_positions", positions,
                          recording_.Row("distinct_positions", depth), 0);
      }
      if (depth + 1 == depths) break;
      found = {static_cast<double>(depth + 1), 0, 0, 0, 0};
      // Of the last positions nothing is asked but their number.
      const bool keep = depth + 2 < depths || depth + 1 < distinct_depths;
      level = NextLevel(level, static_cast<size_t>(depth), keep, found);
    }
  }

  // The positions one move later, and how many ways lead to them and to which ends.
  Level NextLevel(const Level& level, size_t depth, bool keep, std::vector<double>& found) {
    Level next;
    std::unordered_map<uint64_t, size_t> index;  // by hash
    for (size_t i = 0; i < level.ways.size(); ++i) {
      const double ways = level.ways[i];
      const auto moves = std::span(level.moves).subspan(i * depth, depth);
      Play(moves);
      for (const Move move : Legal()) {
        game_.Play(move);
        found[1] += ways;
        if (game_.Over()) {
          const double outcome = game_.Outcome(0);
          found[outcome > 0 ? 2 : outcome < 0 ? 3 : 4] += ways;
        }
        if (keep) {
          const auto [entry, fresh] = index.emplace(game_.Hash(), next.ways.size());
          if (fresh) {
            next.moves.insert(next.moves.end(), moves.begin(), moves.end());
            next.moves.push_back(move);
            next.ways.push_back(0);
          }
          next.ways[entry->second] += ways;
        }
        game_.Undo();
      }
    }
    return next;
  }

  void CheckPerft() {
    for (int64_t i = 0; i < recording_.Rows("perft.moves"); ++i) {
      Play(MovesOf("perft.moves", i));
      const std::vector<double> expected = recording_.Row("perft.sequences", i);
      std::vector<double> found(expected.size());
      Count(0, found);
      comparison_.Check("perft.sequences", found, expected, 0);
    }
  }

  void Count(size_t depth, std::vector<double>& found) {
    ++found[depth];
    if (depth + 1 == found.size()) return;
    for (const Move move : Legal()) {
      game_.Play(move);
      Count(depth + 1, found);
      game_.Undo();
    }
  }

  void CheckSolved() {
    for (int64_t i = 0; i < recording_.Rows("solved.moves"); ++i) {
      Play(MovesOf("solved.moves", i));
      bounds_.clear();
      const auto [value, best] = Solve();
      comparison_.Check("solved.value", value, recording_.Number("solved.value", i), 0);
      comparison_.Check("solved.optimal", best, recording_.Number("solved.optimal", i), 0);
    }
  }

  // Rows: cells of the player to move and of the other as bit masks, value, best moves, whether the
  // game is over.
  void CheckPositions() {
    WEFT_CHECK(spec_.planes[0] == 2) << "positions of " << spec_.id << " in " << recording_.name();
    std::map<std::pair<double, double>, std::array<double, 3>> positions;
    game_.Start();
    CollectPositions(positions);
    comparison_.Check("positions (number)", static_cast<double>(positions.size()),
                      static_cast<double>(recording_.Rows("positions")), 0);
    for (int64_t i = 0; i < recording_.Rows("positions"); ++i) {
      const std::vector<double> row = recording_.Row("positions", i);
      const auto found = positions.find({row.at(0), row.at(1)});
      comparison_.Check("positions (reached)", found != positions.end(), 1, 0);
      if (found != positions.end())
        comparison_.Check("positions", found->second, std::span(row).subspan(2), 0);
    }
  }

  void CollectPositions(std::map<std::pair<double, double>, std::array<double, 3>>& positions) {
    std::vector<uint8_t> planes(static_cast<size_t>(spec_.planes.elements()));
    game_.Observe(planes);
    const size_t cells = planes.size() / 2;
    std::pair<double, double> key;
    for (size_t cell = 0; cell < cells; ++cell) {
      key.first += planes[cell] * static_cast<double>(1 << cell);
      key.second += planes[cells + cell] * static_cast<double>(1 << cell);
    }
    const auto [entry, fresh] = positions.emplace(key, std::array<double, 3>{});
    if (!fresh) return;
    const auto [value, best] = Solve();
    entry->second = {value, best, game_.Over() ? 1.0 : 0.0};
    for (const Move move : Legal()) {
      game_.Play(move);
      CollectPositions(positions);
      game_.Undo();
    }
  }

  // Value of the position for the player to move, and the moves that keep it as a bit mask.
  std::pair<double, double> Solve() {
    if (game_.Over()) return {game_.Outcome(game_.ToMove()), 0};
    double best = -1, mask = 0;
    for (const Move move : Legal()) {
      game_.Play(move);
      const double value = -Value(-1, 1);
      game_.Undo();
      if (value > best) mask = 0;
      best = std::max(best, value);
      if (value == best) mask += static_cast<double>(1 << move);
    }
    return {best, mask};
  }

  // Alpha-beta search of values in -1, 0 and 1, from the moves in the middle outwards.
  int8_t Value(int8_t alpha, int8_t beta) {
    if (game_.Over()) return static_cast<int8_t>(game_.Outcome(game_.ToMove()));
    Bounds& known = bounds_[game_.Hash()];
    if (known.low >= beta || known.low == known.high) return known.low;
    if (known.high <= alpha) return known.high;
    const int8_t window = std::max(alpha, known.low);
    int8_t best = -1;
    const std::vector<Move> moves = Legal();
    const size_t middle = (moves.size() - 1) / 2;
    for (size_t i = 0; i < moves.size() && best < beta; ++i) {
      const size_t from_middle = (i + 1) / 2;
      game_.Play(moves[i % 2 == 0 ? middle - from_middle : middle + from_middle]);
      const auto value =
          static_cast<int8_t>(-Value(-beta, static_cast<int8_t>(-std::max(window, best))));
      game_.Undo();
      best = std::max(best, value);
    }
    if (best > window) known.low = best;
    if (best < beta) known.high = best;
    return best;
  }

  std::vector<Move> Legal() const {
    std::vector<Move> moves(static_cast<size_t>(spec_.actions));
    moves.resize(static_cast<size_t>(game_.LegalMoves(moves)));
    return moves;
  }
  std::vector<Move> MovesOf(const std::string& tensor, int64_t row) const {
    std::vector<Move> moves;
    for (const double move : recording_.Row(tensor, row)) {
      if (move >= 0) moves.push_back(static_cast<Move>(move));
    }
    return moves;
  }
  void Play(std::span<const Move> moves) {
    game_.Start();
    for (const Move move : moves) {
      WEFT_CHECK(game_.IsLegal(move))
          << recording_.name() << " plays the illegal move " << move << " in\n"
          << game_.Text();
      game_.Play(move);
    }
  }

  const Recording& recording_;
  Game& game_;
  const GameSpec spec_;
  Comparison& comparison_;
  std::unordered_map<uint64_t, Bounds> bounds_;  // by hash
};

}  // namespace

void VerifyGames(const Recording& recording, Game& game, Comparison& comparison) {
  GameVerifier(recording, game, comparison).Run();
}

}  // namespace weft
