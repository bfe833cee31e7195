// How fast games are played: what a search by random playouts asks of them.
#pragma once

#include <string>
#include <vector>

namespace weft {

struct GameFigure {
  std::string id;
  double moves_per_second = 0;  // median of five samples
  double low = 0, high = 0;     // of the samples
};

// Random games on one thread, from the first position to the end: all legal moves are listed, one
// of them is played. only: the id of a game, or "" for all of them.
std::vector<GameFigure> BenchGames(const std::string& only);

}  // namespace weft
