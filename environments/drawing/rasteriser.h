// Fills polygons with exact anti-aliasing: the coverage of a pixel is the area of it that lies
// inside.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "environments/drawing/picture.h"

namespace weft {

struct Point {
  double x, y;
};

struct Colour {
  uint8_t red = 0, green = 0, blue = 0;
  double opacity = 1;  // in [0, 1]

  bool operator==(const Colour&) const = default;
};

class Rasteriser {
 public:
  // polygon: corners in pixels, y downwards from the top edge of the picture, in either sense; the
  // last is joined to the first. Where it crosses itself, areas of opposite senses cancel: two
  // outlines in opposite senses, joined by a seam, are a ring. Parts outside the picture are cut
  // off; a polygon with a corner that is not finite is left out.
  void Fill(std::span<const Point> polygon, const Colour& colour, Picture& picture);

 private:
  void AddEdge(Point from, Point to);
  void AddPart(Point from, Point to);

  double width_ = 0;
  int64_t top_ = 0, bottom_ = 0;  // rows [top, bottom) that the polygon touches
  // [bottom - top, width + 1]: by how much the covered area of a pixel differs from that of its
  // left neighbour.
  std::vector<double> change_;
};

}  // namespace weft
