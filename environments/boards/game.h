// Games of perfect information in which players move in turn, as planners see them: legal moves,
// play, undo, cheap copies, outcomes, what a network reads, symmetries and hashes. The same games
// are environments of the registry, in which an agent meets an opponent (game_environment.h).
//
// A position is a value of a concrete final class. Nothing but Clone and Spec allocates. Not
// thread-safe: every thread has its copy.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/registry.h"
#include "tensor/tensor.h"

namespace weft {

class Config;

using Move = int16_t;  // an action, 0 .. actions - 1

// A way to turn or mirror the board that keeps the rules: what is true of a position and the move m
// is true of the turned position and the move move[m]. Cell i of each plane goes to cell[i].
struct Symmetry {
  std::vector<Move> move;     // [actions]
  std::vector<int32_t> cell;  // [H * W]
};

struct GameSpec {
  std::string id;
  int players = 2;
  int64_t actions = 0;
  Shape planes;                      // [C, H, W] of an observation
  int64_t longest = 0;               // moves of the longest game
  std::vector<Symmetry> symmetries;  // the identity first
};

class Game {
 public:
  virtual ~Game() = default;
  virtual GameSpec Spec() const = 0;

  virtual std::unique_ptr<Game> Clone() const = 0;
  // Becomes a copy of a position, with its history, of the same class and arguments.
  virtual void CopyFrom(const Game& other) = 0;

  virtual void Start() = 0;  // back to the first position
  // The player whose turn it is, 0 .. players - 1; at the end the one whose turn it would be.
  virtual int ToMove() const = 0;
  virtual bool Over() const = 0;
  // 1 when the player has won, -1 when it has lost, 0 for a draw and before the end.
  virtual double Outcome(int player) const = 0;

  // Writes the legal moves in ascending order to a buffer of at least spec.actions and returns how
  // many there are: 0 exactly when the game is over.
  virtual int64_t LegalMoves(std::span<Move> moves) const = 0;
  virtual bool IsLegal(Move move) const = 0;  // of any move in 0 .. actions - 1
  // Plays a legal move, which is not checked.
  virtual void Play(Move move) = 0;
  // Takes back the last move, of which there is one.
  virtual void Undo() = 0;
  virtual std::span<const Move> Moves() const = 0;  // those played, in order

  // Writes spec.planes of 0 and 1 as the player to move sees the position.
  virtual void Observe(std::span<uint8_t> planes) const = 0;
  // Equal for positions that look the same with the same player to move, however they came about;
  // of different ones equal with a probability of 2^-64 at most.
  virtual uint64_t Hash() const = 0;

  virtual std::string MoveText(Move move) const = 0;  // as players write it: "D4"
  virtual std::string Text() const = 0;               // the board, a line per row
};

// What the concrete classes share: G copies itself.
template <class G>
class GameOf : public Game {
 public:
  std::unique_ptr<Game> Clone() const final {
    return std::make_unique<G>(static_cast<const G&>(*this));
  }
  void CopyFrom(const Game& other) final { static_cast<G&>(*this) = static_cast<const G&>(other); }
};

// Games by the ids of their environments; make takes that environment's arguments.
struct GameEntry {
  std::function<std::unique_ptr<Game>(const Config& arguments)> make;
};
Registry<GameEntry>& Games();

// Every cell of the planes moves as the symmetry says. from, to: [C, H * W], not the same.
void TransformPlanes(const Symmetry& symmetry, std::span<const uint8_t> from,
                     std::span<uint8_t> to);
// One number for each action (a policy, a mask) moves along. from, to: [actions], not the same.
template <class T>
void TransformMoves(const Symmetry& symmetry, std::span<const T> from, std::span<T> to) {
  for (size_t i = 0; i < from.size(); ++i) to[static_cast<size_t>(symmetry.move[i])] = from[i];
}

// Of a board of size x size cells, row by row, whose move m < size * size is a cell: the four turns
// and their mirror images. With `pass` there is one further move, which no symmetry changes.
std::vector<Symmetry> SquareSymmetries(int64_t size, bool pass);

// The cell in the notation of Go and Gomoku: columns are letters without I, row 1 is the last one.
std::string CellName(int64_t cell, int64_t size);
// A square board with these names around it; symbol gives the character of a cell.
std::string SquareText(int64_t size, const std::function<char(int64_t cell)>& symbol);

}  // namespace weft
