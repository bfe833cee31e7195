// Data of several files in given shares.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>

namespace weft {

// Of sources that are drawn from in turn, by weights and what was drawn of each so far: the one
// that is furthest behind its share, the first of several.
inline size_t FurthestBehind(std::span<const double> weights, std::span<const int64_t> drawn) {
  const double weight = std::accumulate(weights.begin(), weights.end(), 0.0);
  const auto all = static_cast<double>(1 + std::accumulate(drawn.begin(), drawn.end(), int64_t{0}));
  size_t best = 0;
  double most = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < weights.size(); ++i) {
    const double owed = all * weights[i] / weight - static_cast<double>(drawn[i]);
    if (owed > most) {
      most = owed;
      best = i;
    }
  }
  return best;
}

}  // namespace weft
