// Who an agent plays against in the environments of games.
#pragma once

#include <functional>
#include <memory>

#include "base/random.h"
#include "base/registry.h"
#include "environments/boards/game.h"

namespace weft {

// Opponents remember nothing from move to move: what they choose depends on the position and the
// random stream alone, so that resuming and placement change no game.
class Opponent {
 public:
  virtual ~Opponent() = default;
  // A legal move of a game that is not over.
  virtual Move Choose(const Game& game, Rng& rng) = 0;
};

// make gets a game of the kind that the opponent will play.
struct OpponentEntry {
  std::function<std::unique_ptr<Opponent>(const Game& game)> make;
};
// By the names that environments take as their argument `opponent`.
Registry<OpponentEntry>& Opponents();

}  // namespace weft
