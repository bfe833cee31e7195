// Go under Chinese rules: area scoring, komi, positional superko, no suicide; the game ends with
// two passes in a row or after max_moves moves, and what is on the board then counts as it stands
// (no dead stones are taken off). Moves are cells, row by row, and last the pass. Player 0 is
// black.
//
// Observation planes (Silver et al. 2017): for the last eight positions, from the newest, the
// stones of the player to move and those of the other; then 1 everywhere if black is to move.
#pragma once

#include "environments/boards/game_environment.h"
#include "environments/boards/go_board.h"

namespace weft {

class Go final : public GameOf<Go> {
 public:
  static constexpr double kStepNanoseconds = 2000;
  struct Arguments : GameArguments {
    Arguments(const char* environment_id, int64_t default_size)
        : id(environment_id), size(default_size) {}
    void Fields(FieldVisitor& v) override;

    const char* id;
    int64_t size;
    double komi = 7.5;
    int64_t max_moves = 0;
  };

  explicit Go(const Arguments& arguments);

  GameSpec Spec() const override;
  void Start() override;
  int ToMove() const override { return static_cast<int>(played_ % 2); }
  bool Over() const override { return over_; }
  double Outcome(int player) const override {
    return !over_ || lead_ == 0 ? 0 : (lead_ > 0) == (player == 0) ? 1 : -1;
  }
  int64_t LegalMoves(std::span<Move> moves) const override;
  bool IsLegal(Move move) const override {
    return !over_ && (move == pass() || board_.CanPlace(move, Colour()));
  }
  void Play(Move move) override;
  void Undo() override;
  std::span<const Move> Moves() const override { return {moves_.data(), played_}; }
  void Observe(std::span<uint8_t> planes) const override;
  uint64_t Hash() const override;
  std::string MoveText(Move move) const override;
  std::string Text() const override;

  const GoBoard& board() const { return board_; }
  // Area of black less that of white and komi, as the board stands.
  double Lead() const;

 private:
  static constexpr int kHistory = 8;  // positions in an observation

  Move pass() const { return static_cast<Move>(board_.cells()); }
  Stone Colour() const { return ToMove() == 0 ? Stone::kBlack : Stone::kWhite; }
  bool PassedLast() const { return played_ > 0 && moves_[played_ - 1] == pass(); }

  const char* id_;
  double komi_;
  GoBoard board_;
  std::vector<Move> moves_;  // [longest], of which played_ are in force
  size_t played_ = 0;
  bool over_ = false;
  double lead_ = 0;  // at the end
};

}  // namespace weft
