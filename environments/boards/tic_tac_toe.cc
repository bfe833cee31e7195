#include "environments/boards/tic_tac_toe.h"

#include "environments/boards/zobrist.h"

namespace weft {
namespace {

constexpr int64_t kSide = 3;
// Rows, columns and diagonals as bit masks.
constexpr uint32_t kLines[] = {0007, 0070, 0700, 0111, 0222, 0444, 0421, 0124};

bool HasLine(uint32_t stones) {
  for (const uint32_t line : kLines) {
    if ((stones & line) == line) return true;
  }
  return false;
}

}  // namespace

GameSpec TicTacToe::Spec() const {
  return {.id = "TicTacToe-v0",
          .actions = kCells,
          .planes = {2, kSide, kSide},
          .longest = kCells,
          .symmetries = SquareSymmetries(kSide, false)};
}

int64_t TicTacToe::LegalMoves(std::span<Move> moves) const {
  int64_t count = 0;
  if (Over()) return 0;
  for (Move cell = 0; cell < kCells; ++cell) {
    if (((taken() >> cell) & 1) == 0) moves[static_cast<size_t>(count++)] = cell;
  }
  return count;
}

void TicTacToe::Play(Move move) {
  uint32_t& mine = stones_[static_cast<size_t>(ToMove())];
  mine |= 1u << move;
  won_ = HasLine(mine);
  moves_[static_cast<size_t>(played_++)] = move;
}

void TicTacToe::Undo() {
  const Move move = moves_[static_cast<size_t>(--played_)];
  stones_[static_cast<size_t>(ToMove())] &= ~(1u << move);
  won_ = false;
}

void TicTacToe::Observe(std::span<uint8_t> planes) const {
  const auto mine = static_cast<size_t>(ToMove());
  for (size_t cell = 0; cell < kCells; ++cell) {
    planes[cell] = (stones_[mine] >> cell) & 1;
    planes[kCells + cell] = (stones_[1 - mine] >> cell) & 1;
  }
}

uint64_t TicTacToe::Hash() const {
  return Scatter(stones_[0] | uint64_t{stones_[1]} << kCells);
}

std::string TicTacToe::MoveText(Move move) const {
  return "row " + std::to_string(move / kSide) + ", column " + std::to_string(move % kSide);
}

std::string TicTacToe::Text() const {
  std::string text;
  for (int64_t cell = 0; cell < kCells; ++cell) {
    text += (stones_[0] >> cell) & 1 ? 'X' : (stones_[1] >> cell) & 1 ? 'O' : '.';
    text += cell % kSide == kSide - 1 ? '\n' : ' ';
  }
  return text;
}

namespace {
WEFT_REGISTER_GAME(TicTacToe, "TicTacToe-v0",
                   "three in a row against an opponent: 3 x 3 cells, 9 actions")
}  // namespace

}  // namespace weft
