#include "environments/drawing/rasteriser.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace weft {

void Rasteriser::Fill(std::span<const Point> polygon, const Colour& colour, Picture& picture) {
  if (polygon.size() < 3) return;
  double low = polygon[0].y, high = low;
  for (const Point& point : polygon) {
    if (!std::isfinite(point.x) || !std::isfinite(point.y)) return;
    low = std::min(low, point.y);
    high = std::max(high, point.y);
  }
  const auto height = static_cast<double>(picture.height);
  width_ = static_cast<double>(picture.width);
  top_ = static_cast<int64_t>(std::floor(std::clamp(low, 0.0, height)));
  bottom_ = static_cast<int64_t>(std::ceil(std::clamp(high, 0.0, height)));
  if (top_ >= bottom_) return;
  const auto stride = static_cast<size_t>(picture.width + 1);
  change_.assign(stride * static_cast<size_t>(bottom_ - top_), 0);
  for (size_t i = 0; i < polygon.size(); ++i)
    AddEdge(polygon[i], polygon[(i + 1) % polygon.size()]);

  const double channels[] = {static_cast<double>(colour.red), static_cast<double>(colour.green),
                             static_cast<double>(colour.blue)};
  for (int64_t y = top_; y < bottom_; ++y) {
    const double* change = change_.data() + stride * static_cast<size_t>(y - top_);
    uint8_t* pixel = picture.At(0, y);
    double area = 0;
    for (int64_t x = 0; x < picture.width; ++x, pixel += 3) {
      area += change[x];
      const double share = std::min(1.0, std::abs(area)) * colour.opacity;
      if (share < 1e-9) continue;  // rounding of the sum
      for (int i = 0; i < 3; ++i) {
        pixel[i] = static_cast<uint8_t>(pixel[i] + (channels[i] - pixel[i]) * share + 0.5);
      }
    }
  }
}

// Cuts an edge at the rows' ends and at the left and right edge of the picture. What lies to the
// left covers as much as the left edge itself, what lies to the right covers nothing.
void Rasteriser::AddEdge(Point from, Point to) {
  const auto top = static_cast<double>(top_), bottom = static_cast<double>(bottom_);
  const double slope = (to.x - from.x) / (to.y - from.y);
  const auto at_height = [&](double y) { return Point{from.x + (y - from.y) * slope, y}; };
  if (from.y == to.y || std::max(from.y, to.y) <= top || std::min(from.y, to.y) >= bottom) return;
  Point begin = from, end = to;
  for (Point* point : {&begin, &end}) {
    if (point->y < top) *point = at_height(top);
    if (point->y > bottom) *point = at_height(bottom);
  }
  double cuts[] = {0, 0, width_, 1};  // shares of the way from begin to end
  for (const int side : {1, 2}) {
    const double share = (cuts[side] - begin.x) / (end.x - begin.x);
    cuts[side] = share > 0 && share < 1 ? share : 0;
  }
  if (cuts[1] > cuts[2]) std::swap(cuts[1], cuts[2]);
  const auto along = [&](double share) {
    if (share == 0) return begin;
    if (share == 1) return end;
    return Point{begin.x + (end.x - begin.x) * share, begin.y + (end.y - begin.y) * share};
  };
  for (int part = 0; part < 3; ++part) {
    Point a = along(cuts[part]), b = along(cuts[part + 1]);
    if ((a.x + b.x) / 2 > width_) continue;
    a.x = std::clamp(a.x, 0.0, width_);
    b.x = std::clamp(b.x, 0.0, width_);
    AddPart(a, b);
  }
}

// An edge inside the picture. Downwards it adds, per row, the area to its right; upwards it takes
// it away.
void Rasteriser::AddPart(Point from, Point to) {
  if (from.y == to.y) return;
  const double sense = from.y < to.y ? 1 : -1;
  if (sense < 0) std::swap(from, to);
  const double slope = (to.x - from.x) / (to.y - from.y);
  const auto stride = static_cast<size_t>(width_) + 1;
  const double right = width_;
  const auto last_row = std::min(bottom_, static_cast<int64_t>(std::ceil(to.y)));
  for (auto row = static_cast<int64_t>(std::floor(from.y)); row < last_row; ++row) {
    const double begin = std::max(from.y, static_cast<double>(row));
    const double end = std::min(to.y, static_cast<double>(row + 1));
    if (end <= begin) continue;
    double* change = change_.data() + stride * static_cast<size_t>(row - top_);
    double x0 = std::clamp(from.x + (begin - from.y) * slope, 0.0, right);
    double x1 = std::clamp(from.x + (end - from.y) * slope, 0.0, right);
    if (x0 > x1) std::swap(x0, x1);
    const double drop = sense * (end - begin);
    // Column by column: the edge's share of the height in it, and how far from its right border.
    for (double column = std::floor(x0);; ++column) {
      const double a = std::max(x0, column), b = std::min(x1, column + 1);
      const double share = x1 > x0 ? drop * (b - a) / (x1 - x0) : drop;
      const double covered = share * (column + 1 - (a + b) / 2);
      const auto index = static_cast<size_t>(column);
      change[index] += covered;
      if (index + 1 < stride) change[index + 1] += share - covered;
      if (column + 1 >= x1) break;
    }
  }
}

}  // namespace weft
