// The tracks of CarRacing-v3, drawn as Gymnasium 1.4's box2d/car_racing.py does: a line that steers
// from one random checkpoint to the next around the centre, of which the second lap is taken.
#pragma once

#include <array>
#include <vector>

#include "base/random.h"
#include "environments/drawing/rasteriser.h"

namespace weft::car_racing {

inline constexpr double kTrackScale = 6;  // pixels per metre: lengths are given in pixels
inline constexpr double kPlayfield = 2000 / kTrackScale;  // m, half a side

inline constexpr int kMostSteps = 2500;  // of several laps

// A step along the track, and the tile of road from it back to the one before.
struct Stretch {
  double angle = 0;             // of the place, seen from the centre, rad
  double heading = 0;           // rad; 0 is along y
  double x = 0, y = 0;          // m, of the middle of the road
  std::array<Point, 4> tile;    // m
  bool hard_turn = false;       // it has a border
  std::array<Point, 4> border;  // m, if so
};

// Leaves out of `track` what it held; tries until a track closes.
void DrawTrack(Rng& rng, std::vector<Stretch>& track);

}  // namespace weft::car_racing
