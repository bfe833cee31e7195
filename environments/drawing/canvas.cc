#include "environments/drawing/canvas.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace weft {
namespace {

constexpr double kPi = std::numbers::pi;

}  // namespace

void Canvas::Open(double left, double right, double bottom, double top, const Colour& background) {
  if (!camera_.empty()) {
    throw Error(ErrorCode::kConfig, "camera " + camera_ +
                                        ": this environment is a drawing, which "
                                        "has no cameras");
  }
  const auto width = static_cast<double>(picture_.width);
  const auto height = static_cast<double>(picture_.height);
  scale_ = std::min(width / (right - left), height / (top - bottom));
  left_ = (left + right - width / scale_) / 2;
  top_ = (bottom + top + height / scale_) / 2;
  for (size_t i = 0; i < picture_.pixels.size(); i += 3) {
    picture_.pixels[i] = background.red;
    picture_.pixels[i + 1] = background.green;
    picture_.pixels[i + 2] = background.blue;
  }
}

void Canvas::Polygon(std::span<const Point> corners, const Colour& colour) {
  points_.assign(corners.begin(), corners.end());
  Fill(colour);
}

void Canvas::Rectangle(double left, double right, double bottom, double top, const Colour& colour) {
  Polygon({{left, bottom}, {right, bottom}, {right, top}, {left, top}}, colour);
}

void Canvas::Circle(Point centre, double radius, const Colour& colour) {
  points_.clear();
  AppendArc(centre, radius, 0, 2 * kPi);
  Fill(colour);
}

void Canvas::Ring(Point centre, double radius, double width, const Colour& colour) {
  points_.clear();
  AppendArc(centre, radius + width / 2, 0, 2 * kPi);
  AppendArc(centre, std::max(0.0, radius - width / 2), 2 * kPi, 0);
  Fill(colour);
}

void Canvas::Line(Point from, Point to, double width, const Colour& colour) {
  const double across = std::atan2(to.y - from.y, to.x - from.x) + kPi / 2;
  points_.clear();
  AppendArc(from, width / 2, across, across + kPi);
  AppendArc(to, width / 2, across + kPi, across + 2 * kPi);
  Fill(colour);
}

void Canvas::Polyline(std::span<const Point> points, double width, const Colour& colour) {
  for (size_t i = 1; i < points.size(); ++i) Line(points[i - 1], points[i], width, colour);
}

void Canvas::AppendArc(Point centre, double radius, double from, double to) {
  // Chords that stay within a tenth of a pixel of the arc, as far as that is sensible.
  constexpr double kDeviation = 0.1, kMostSteps = 720;
  const double pixels = std::max(1.0, std::abs(radius) * scale_);
  const double step = 2 * std::acos(1 - kDeviation / pixels);
  const double steps = std::clamp(std::ceil(std::abs(to - from) / step), 4.0, kMostSteps);
  for (double i = 0; i <= steps; ++i) {
    const double angle = from + (to - from) * i / steps;
    points_.push_back({centre.x + radius * std::cos(angle), centre.y + radius * std::sin(angle)});
  }
}

void Canvas::Fill(const Colour& colour) {
  for (Point& point : points_) point = {(point.x - left_) * scale_, (top_ - point.y) * scale_};
  rasteriser_.Fill(points_, colour, picture_);
}

}  // namespace weft
