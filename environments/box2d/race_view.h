// A small rasteriser for pictures that are taken at every step: convex shapes, each pixel the mean
// of 4 x 4 points. Shapes that share an edge leave no seam, as coverage by area would.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "environments/drawing/picture.h"
#include "environments/drawing/rasteriser.h"

namespace weft::car_racing {

class View {
 public:
  static constexpr size_t kMaxCorners = 8;

  View() { shapes_.reserve(1000); }  // patches of grass and tiles of road

  void Clear() { shapes_.clear(); }
  // Corners of a convex polygon in shares of the picture's sides, from its upper left corner; over
  // the shapes before it. Opacity is ignored.
  void Add(std::span<const Point> corners, const Colour& colour);
  // Writes [height, width, 3], black where there is no shape.
  void Paint(int64_t width, int64_t height, uint8_t* pixels);

 private:
  struct Shape {
    std::array<Point, kMaxCorners> corners;
    size_t count;
    double top, bottom;
    uint32_t colour;  // red, green and blue in a byte each from the lowest
  };

  std::vector<Shape> shapes_;
  std::vector<uint32_t> line_;  // points of one line of pixels, [4, 4 * width]
};

}  // namespace weft::car_racing
