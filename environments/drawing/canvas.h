// What an environment draws itself on: a picture, and shapes in the environment's own coordinates
// (m, cells, ..), y upwards. An environment that makes pixels itself writes picture() instead.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "environments/drawing/picture.h"
#include "environments/drawing/rasteriser.h"

namespace weft {

inline constexpr Colour kBlack{0, 0, 0}, kWhite{255, 255, 255};

class Canvas {
 public:
  // camera: which of the environment's cameras looks, by name or number; "": its usual one. The
  // picture must outlive the canvas.
  explicit Canvas(Picture& picture, std::string camera = "")
      : picture_(picture), camera_(std::move(camera)) {}

  Picture& picture() { return picture_; }
  const std::string& camera() const { return camera_; }

  // Begins a drawing: fills the picture with the background, and puts this part of the world into
  // its middle, as large as it fits whole. Throws Error(kConfig) when a camera was asked for:
  // drawings have none.
  void Open(double left, double right, double bottom, double top, const Colour& background);

  // Shapes, each over those before it.
  void Polygon(std::span<const Point> corners, const Colour& colour);
  void Polygon(std::initializer_list<Point> corners, const Colour& colour) {
    Polygon(std::span(corners.begin(), corners.size()), colour);
  }
  void Rectangle(double left, double right, double bottom, double top, const Colour& colour);
  void Circle(Point centre, double radius, const Colour& colour);
  // A circle's outline, the middle of which is at `radius`.
  void Ring(Point centre, double radius, double width, const Colour& colour);
  // With round ends.
  void Line(Point from, Point to, double width, const Colour& colour);
  // Lines from point to point; where they meet, opacity adds up.
  void Polyline(std::span<const Point> points, double width, const Colour& colour);

 private:
  // Appends points of an arc in steps fine enough for the picture; angles in rad, counterclockwise
  // from the x axis.
  void AppendArc(Point centre, double radius, double from, double to);
  void Fill(const Colour& colour);  // the polygon in points_

  Picture& picture_;
  std::string camera_;
  double scale_ = 1, left_ = 0, top_ = 0;  // pixels per unit; the world's coordinates of (0, 0)
  std::vector<Point> points_;              // of the shape that is drawn, in the world
  Rasteriser rasteriser_;
};

}  // namespace weft
