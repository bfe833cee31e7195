// The picture of CarRacing-v3: the road from above, turned and zoomed to the car, over a bar of
// instruments, as Gymnasium 1.4's box2d/car_racing.py draws it into a window of 1000 by 800 pixels.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "environments/box2d/race_car.h"
#include "environments/box2d/race_track.h"
#include "environments/box2d/race_view.h"

namespace weft::car_racing {

struct Palette {
  std::array<double, 3> road{102, 102, 102}, field{102, 204, 102}, grass{102, 230, 102};
};

// What a picture shows.
struct Scene {
  const std::vector<Stretch>& track;
  const std::vector<uint8_t>& touched;  // for each tile, by any part of the car
  const Car& car;
  const Palette& palette;
  double seconds;  // since the reset: the camera comes closer in the first one
  double score;
};

void Draw(const Scene& scene, View& view);

}  // namespace weft::car_racing
