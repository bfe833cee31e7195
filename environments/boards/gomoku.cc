#include "environments/boards/gomoku.h"

#include <algorithm>

#include "environments/boards/zobrist.h"

namespace weft {
namespace {

uint64_t Key(int cell, int player) {
  return ZobristKey(static_cast<uint64_t>(2 * cell + player));
}

}  // namespace

void Gomoku::Arguments::Fields(FieldVisitor& v) {
  v.Field("size", size, "cells along a side", Range::Between(5, 19));
  GameArguments::Fields(v);
}

Gomoku::Gomoku(const Arguments& arguments)
    : size_(static_cast<int>(arguments.size)),
      cells_(size_ * size_),
      board_(static_cast<size_t>(cells_), kEmpty),
      moves_(static_cast<size_t>(cells_)) {}

GameSpec Gomoku::Spec() const {
  return {.id = "Gomoku-v0",
          .actions = cells_,
          .planes = {2, size_, size_},
          .longest = cells_,
          .symmetries = SquareSymmetries(size_, false)};
}

void Gomoku::Start() {
  std::ranges::fill(board_, kEmpty);
  played_ = 0;
  won_ = false;
  hash_ = 0;
}

int64_t Gomoku::LegalMoves(std::span<Move> moves) const {
  if (Over()) return 0;
  size_t count = 0;
  for (int cell = 0; cell < cells_; ++cell) {
    moves[count] = static_cast<Move>(cell);
    count += At(cell) == kEmpty;
  }
  return static_cast<int64_t>(count);
}

void Gomoku::Play(Move move) {
  const auto player = static_cast<uint8_t>(ToMove());
  board_[static_cast<size_t>(move)] = player;
  won_ = MakesFive(move, player);
  hash_ ^= Key(move, player);
  moves_[static_cast<size_t>(played_++)] = move;
}

void Gomoku::Undo() {
  const Move move = moves_[static_cast<size_t>(--played_)];
  board_[static_cast<size_t>(move)] = kEmpty;
  won_ = false;
  hash_ ^= Key(move, ToMove());
}

bool Gomoku::MakesFive(int cell, uint8_t player) const {
  const int row = cell / size_, column = cell % size_;
  constexpr int kDown[] = {0, 1, 1, 1}, kAcross[] = {1, 0, 1, -1};
  for (int i = 0; i < 4; ++i) {
    int run = 1;
    for (const int side : {1, -1}) {
      int r = row + side * kDown[i], c = column + side * kAcross[i];
      while (r >= 0 && r < size_ && c >= 0 && c < size_ && At(r * size_ + c) == player) {
        ++run;
        r += side * kDown[i];
        c += side * kAcross[i];
      }
    }
    if (run >= 5) return true;
  }
  return false;
}

void Gomoku::Observe(std::span<uint8_t> planes) const {
  const int mine = ToMove();
  const auto cells = static_cast<size_t>(cells_);
  for (size_t cell = 0; cell < cells; ++cell) {
    planes[cell] = board_[cell] == mine;
    planes[cells + cell] = board_[cell] == 1 - mine;
  }
}

std::string Gomoku::Text() const {
  return SquareText(size_, [&](int64_t cell) { return "XO."[At(static_cast<int>(cell))]; });
}

namespace {
WEFT_REGISTER_GAME(Gomoku, "Gomoku-v0",
                   "five in a row against an opponent: 15 x 15 cells, 225 actions")
}  // namespace

}  // namespace weft
