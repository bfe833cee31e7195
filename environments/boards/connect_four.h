// Connect Four: four in a row, column or diagonal on 7 columns of 6 cells; a move is the column
// into which a stone falls. Observation planes, row 0 at the top: the stones of the player to move,
// those of the other.
#pragma once

#include <array>

#include "environments/boards/game_environment.h"

namespace weft {

class ConnectFour final : public GameOf<ConnectFour> {
 public:
  static constexpr double kStepNanoseconds = 120;
  using Arguments = GameArguments;

  ConnectFour() = default;
  explicit ConnectFour(const Arguments&) {}

  GameSpec Spec() const override;
  void Start() override { *this = ConnectFour(); }
  int ToMove() const override { return played_ % 2; }
  bool Over() const override { return won_ || played_ == kCells; }
  double Outcome(int player) const override { return !won_ ? 0 : player == ToMove() ? -1 : 1; }
  int64_t LegalMoves(std::span<Move> moves) const override {
    int64_t count = 0;
    for (Move column = 0; column < kColumns; ++column) {
      moves[static_cast<size_t>(count)] = column;
      count += IsLegal(column);
    }
    return count;
  }
  bool IsLegal(Move move) const override { return !Over() && (taken_ & Top(move)) == 0; }
  void Play(Move move) override {
    // The lowest free bit of the column is where its bottom, added to what is taken, carries to.
    const uint64_t stone = (taken_ + Bottom(move)) & Column(move);
    own_ = taken_ ^ own_;  // of the other player, who is to move next
    taken_ |= stone;
    won_ = HasFour(own_ ^ taken_);
    moves_[static_cast<size_t>(played_++)] = move;
  }
  void Undo() override {
    const Move move = moves_[static_cast<size_t>(--played_)];
    const uint64_t column = taken_ & Column(move);
    taken_ ^= column ^ (column >> 1 & Column(move));  // its highest bit
    own_ ^= taken_;
    won_ = false;
  }
  std::span<const Move> Moves() const override {
    return {moves_.data(), static_cast<size_t>(played_)};
  }
  void Observe(std::span<uint8_t> planes) const override;
  uint64_t Hash() const override;
  std::string MoveText(Move move) const override { return "column " + std::to_string(move); }
  std::string Text() const override;

 private:
  static constexpr int kColumns = 7, kRows = 6, kCells = kColumns * kRows;
  // Bit column * kBits + row, from the bottom; the topmost bit of each column stays 0.
  static constexpr int kBits = kRows + 1;

  static constexpr uint64_t Bottom(Move column) { return uint64_t{1} << column * kBits; }
  static constexpr uint64_t Top(Move column) { return Bottom(column) << (kRows - 1); }
  static constexpr uint64_t Column(Move column) {
    return ((uint64_t{1} << kRows) - 1) << column * kBits;
  }
  static constexpr bool HasFour(uint64_t stones) {
    // Down a column, along a row, and along both diagonals.
    for (const int step : {1, kBits, kBits - 1, kBits + 1}) {
      const uint64_t pairs = stones & (stones >> step);
      if ((pairs & (pairs >> 2 * step)) != 0) return true;
    }
    return false;
  }

  uint64_t own_ = 0, taken_ = 0;  // stones of the player to move, of both
  std::array<Move, kCells> moves_{};
  int played_ = 0;
  bool won_ = false;  // by whoever moved last
};

}  // namespace weft
