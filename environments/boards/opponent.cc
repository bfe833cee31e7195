#include "environments/boards/opponent.h"

#include <vector>

namespace weft {

Registry<OpponentEntry>& Opponents() {
  // Never destroyed: entries are read while the process ends.
  static auto& registry = *new Registry<OpponentEntry>("opponent");
  return registry;
}

namespace {

// Uniform over the legal moves.
class RandomOpponent final : public Opponent {
 public:
  explicit RandomOpponent(const Game& game) : moves_(static_cast<size_t>(game.Spec().actions)) {}

  Move Choose(const Game& game, Rng& rng) override {
    const auto count = static_cast<uint64_t>(game.LegalMoves(moves_));
    return moves_[rng.Below(count)];
  }

 private:
  std::vector<Move> moves_;
};

[[maybe_unused]] const bool registered = Opponents().Add(
    "random", {.make = [](const Game& game) { return std::make_unique<RandomOpponent>(game); }});

}  // namespace
}  // namespace weft
