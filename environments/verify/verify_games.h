// The part of verification that compares games: how many sequences of moves and positions there are
// at each depth, and the values of positions.
#pragma once

#include <string>

#include "environments/boards/game.h"
#include "base/comparison.h"
#include "environments/verify/recording.h"

namespace weft {

inline bool HoldsGames(const Recording& recording) {
  return recording.Has("sequences") && (recording.Has("positions") || recording.Has("perft.moves"));
}

// Compares exactly: `sequences` and `distinct_positions` by a walk over all positions from the
// first one, `perft.sequences` by playing all sequences from given positions, `solved.value` and
// `solved.optimal` by searching given positions to the end, and `positions` as the values of all
// positions of a game of two planes.
void VerifyGames(const Recording& recording, Game& game, Comparison& comparison);

}  // namespace weft
