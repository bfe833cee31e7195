// Tic-tac-toe: three in a row on 3 x 3 cells; moves are cells, row by row. Player 0 is X.
// Observation planes: the stones of the player to move, those of the other.
#pragma once

#include <array>

#include "environments/boards/game_environment.h"

namespace weft {

class TicTacToe final : public GameOf<TicTacToe> {
 public:
  static constexpr double kStepNanoseconds = 80;
  using Arguments = GameArguments;

  TicTacToe() = default;
  explicit TicTacToe(const Arguments&) {}

  GameSpec Spec() const override;
  void Start() override { *this = TicTacToe(); }
  int ToMove() const override { return played_ % 2; }
  bool Over() const override { return won_ || played_ == kCells; }
  double Outcome(int player) const override { return !won_ ? 0 : player == ToMove() ? -1 : 1; }
  int64_t LegalMoves(std::span<Move> moves) const override;
  bool IsLegal(Move move) const override { return !Over() && ((taken() >> move) & 1) == 0; }
  void Play(Move move) override;
  void Undo() override;
  std::span<const Move> Moves() const override {
    return {moves_.data(), static_cast<size_t>(played_)};
  }
  void Observe(std::span<uint8_t> planes) const override;
  uint64_t Hash() const override;
  std::string MoveText(Move move) const override;
  std::string Text() const override;

 private:
  static constexpr int kCells = 9;

  uint32_t taken() const { return stones_[0] | stones_[1]; }

  std::array<uint32_t, 2> stones_{};  // bit masks of cells
  std::array<Move, kCells> moves_{};
  int played_ = 0;
  bool won_ = false;  // by whoever moved last
};

}  // namespace weft
