#include "environments/boards/go.h"

#include <algorithm>
#include <array>

#include "environments/boards/zobrist.h"

namespace weft {
namespace {

int64_t MostMoves(const Go::Arguments& arguments) {
  return arguments.max_moves > 0 ? arguments.max_moves : 2 * arguments.size * arguments.size;
}

// Beyond the keys of the stones.
constexpr uint64_t kWhiteToMove = ZobristKey(1 << 16), kPassed = ZobristKey((1 << 16) + 1);

}  // namespace

void Go::Arguments::Fields(FieldVisitor& v) {
  v.Field("size", size, "points along a side", Range::Between(2, GoBoard::kMostSize));
  v.Field("komi", komi, "points that white gets for moving second");
  v.Field("max_moves", max_moves, "moves after which the game ends; 0: twice as many as points",
          Range::Between(0, 60000));
  GameArguments::Fields(v);
}

Go::Go(const Arguments& arguments)
    : id_(arguments.id),
      komi_(arguments.komi),
      board_(static_cast<int>(arguments.size), MostMoves(arguments)),
      moves_(static_cast<size_t>(MostMoves(arguments))) {}

GameSpec Go::Spec() const {
  const int64_t size = board_.size();
  return {.id = id_,
          .actions = board_.cells() + 1,
          .planes = {2 * kHistory + 1, size, size},
          .longest = std::ssize(moves_),
          .symmetries = SquareSymmetries(size, true)};
}

void Go::Start() {
  board_.Clear();
  played_ = 0;
  over_ = false;
}

int64_t Go::LegalMoves(std::span<Move> moves) const {
  if (over_) return 0;
  const Stone colour = Colour();
  size_t count = 0;
  for (Move cell = 0; cell < pass(); ++cell) {
    moves[count] = cell;
    count += board_.CanPlace(cell, colour);
  }
  moves[count++] = pass();
  return static_cast<int64_t>(count);
}

void Go::Play(Move move) {
  const bool second_pass = move == pass() && PassedLast();
  if (move != pass()) board_.Place(move, Colour());
  moves_[played_++] = move;
  over_ = second_pass || played_ == moves_.size();
  if (over_) lead_ = Lead();
}

void Go::Undo() {
  if (moves_[--played_] != pass()) board_.TakeBack();
  over_ = false;
}

double Go::Lead() const {
  return static_cast<double>(board_.Area(Stone::kBlack) - board_.Area(Stone::kWhite)) - komi_;
}

uint64_t Go::Hash() const {
  return board_.hash() ^ (ToMove() == 1 ? kWhiteToMove : 0) ^ (PassedLast() ? kPassed : 0);
}

void Go::Observe(std::span<uint8_t> planes) const {
  // The board is taken back move by move on a copy of its stones.
  std::array<Stone, GoBoard::kMostSize * GoBoard::kMostSize> stones;
  const int cells = board_.cells();
  for (int cell = 0; cell < cells; ++cell) stones[static_cast<size_t>(cell)] = board_.at(cell);
  const Stone mine = Colour(), its = Other(mine);
  const auto size = static_cast<size_t>(cells);
  int64_t placed = board_.placed();
  for (size_t age = 0; age < kHistory; ++age) {
    const auto own_plane = planes.subspan(2 * age * size, size);
    const auto other_plane = planes.subspan((2 * age + 1) * size, size);
    for (size_t cell = 0; cell < size; ++cell) {
      own_plane[cell] = stones[cell] == mine;
      other_plane[cell] = stones[cell] == its;
    }
    if (age >= played_ || moves_[played_ - 1 - age] == pass()) continue;
    --placed;
    const auto cell = static_cast<size_t>(board_.cell_placed(placed));
    const Stone captured = Other(stones[cell]);
    stones[cell] = Stone::kEmpty;
    board_.EachCaptured(placed, [&](int back) { stones[static_cast<size_t>(back)] = captured; });
  }
  std::ranges::fill(planes.subspan(2 * kHistory * size), ToMove() == 0 ? 1 : 0);
}

std::string Go::MoveText(Move move) const {
  return move == pass() ? "pass" : CellName(move, board_.size());
}

std::string Go::Text() const {
  return SquareText(board_.size(), [&](int64_t cell) {
    return ".XO"[static_cast<size_t>(board_.at(static_cast<int>(cell)))];
  });
}

namespace {
WEFT_REGISTER_GAME(Go, "Go9x9-v0", "Go against an opponent: 9 x 9 points, 82 actions", "Go9x9-v0",
                   9)
WEFT_REGISTER_GAME(Go, "Go19x19-v0", "Go against an opponent: 19 x 19 points, 362 actions",
                   "Go19x19-v0", 19)
}  // namespace

}  // namespace weft
