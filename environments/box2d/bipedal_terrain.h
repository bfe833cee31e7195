// The ground of BipedalWalker-v3: grass that rises and falls a little, in the hardcore variant with
// pits, stumps and stairs, drawn as Gymnasium 1.4's box2d/bipedal_walker.py does.
#pragma once

#include <array>
#include <vector>

#include "base/random.h"
#include "environments/box2d/bipedal_walker_rules.h"
#include "environments/drawing/rasteriser.h"

namespace weft::bipedal_walker {

inline constexpr double kTerrainHeight = 400 / kScale / 4;  // m, of the level start
inline constexpr int kTerrainStart = 20;                    // level steps

// In m.
struct Terrain {
  std::array<Point, kTerrainLength> ground;     // from left to right, joined by edges
  std::vector<std::array<Point, 4>> obstacles;  // quadrilaterals
};

void DrawTerrain(bool hardcore, Rng& rng, Terrain& terrain);

}  // namespace weft::bipedal_walker
