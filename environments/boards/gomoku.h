// Gomoku: five or more in a row, column or diagonal; moves are cells, row by row. Player 0 has the
// black stones. Observation planes: the stones of the player to move, those of the other.
#pragma once

#include "environments/boards/game_environment.h"

namespace weft {

class Gomoku final : public GameOf<Gomoku> {
 public:
  static constexpr double kStepNanoseconds = 500;
  struct Arguments : GameArguments {
    void Fields(FieldVisitor& v) override;
    int64_t size = 15;
  };

  explicit Gomoku(const Arguments& arguments);

  GameSpec Spec() const override;
  void Start() override;
  int ToMove() const override { return played_ % 2; }
  bool Over() const override { return won_ || played_ == cells_; }
  double Outcome(int player) const override { return !won_ ? 0 : player == ToMove() ? -1 : 1; }
  int64_t LegalMoves(std::span<Move> moves) const override;
  bool IsLegal(Move move) const override { return !Over() && At(move) == kEmpty; }
  void Play(Move move) override;
  void Undo() override;
  std::span<const Move> Moves() const override {
    return {moves_.data(), static_cast<size_t>(played_)};
  }
  void Observe(std::span<uint8_t> planes) const override;
  uint64_t Hash() const override { return hash_; }
  std::string MoveText(Move move) const override { return CellName(move, size_); }
  std::string Text() const override;

 private:
  static constexpr uint8_t kEmpty = 2;  // else the player whose stone it is

  uint8_t At(int cell) const { return board_[static_cast<size_t>(cell)]; }
  bool MakesFive(int cell, uint8_t player) const;

  int size_, cells_;
  std::vector<uint8_t> board_;  // [cells]
  std::vector<Move> moves_;     // [cells], of which played_ are in force
  int played_ = 0;
  bool won_ = false;  // by whoever moved last
  uint64_t hash_ = 0;
};

}  // namespace weft
