#include "environments/box2d/race_view.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace weft::car_racing {
namespace {

constexpr int64_t kSamples = 4;  // per pixel and axis

}  // namespace

void View::Add(std::span<const Point> corners, const Colour& colour) {
  WEFT_CHECK(corners.size() >= 3 && corners.size() <= kMaxCorners) << "corners of a shape";
  double left = corners[0].x, right = left, top = corners[0].y, bottom = top;
  for (const Point& corner : corners) {
    left = std::min(left, corner.x);
    right = std::max(right, corner.x);
    top = std::min(top, corner.y);
    bottom = std::max(bottom, corner.y);
  }
  // Outside, or without a finite place.
  if (!(left < 1 && right > 0 && top < 1 && bottom > 0)) return;
  Shape& shape = shapes_.emplace_back();
  std::copy(corners.begin(), corners.end(), shape.corners.begin());
  shape.count = corners.size();
  shape.top = top;
  shape.bottom = bottom;
  shape.colour = colour.red | static_cast<uint32_t>(colour.green) << 8 |
                 static_cast<uint32_t>(colour.blue) << 16;
}

void View::Paint(int64_t width, int64_t height, uint8_t* pixels) {
  const int64_t columns = kSamples * width, lines = kSamples * height;
  line_.resize(static_cast<size_t>(kSamples * columns));
  for (int64_t row = 0; row < height; ++row) {
    std::fill(line_.begin(), line_.end(), 0);
    for (const Shape& shape : shapes_) {
      if (shape.bottom * static_cast<double>(height) <= static_cast<double>(row) ||
          shape.top * static_cast<double>(height) >= static_cast<double>(row + 1)) {
        continue;
      }
      for (int64_t sample = 0; sample < kSamples; ++sample) {
        const double y =
            (static_cast<double>(kSamples * row + sample) + 0.5) / static_cast<double>(lines);
        double left = 2, right = -1;
        for (size_t i = 0; i < shape.count; ++i) {
          const Point &a = shape.corners[i], &b = shape.corners[i + 1 < shape.count ? i + 1 : 0];
          if ((a.y <= y) == (b.y <= y)) continue;
          const double x = a.x + (y - a.y) / (b.y - a.y) * (b.x - a.x);
          left = std::min(left, x);
          right = std::max(right, x);
        }
        const auto column = [&](double x) {
          return static_cast<int64_t>(
              std::ceil(std::clamp(x, 0.0, 1.0) * static_cast<double>(columns) - 0.5));
        };
        uint32_t* points = line_.data() + sample * columns;
        if (left < right) std::fill(points + column(left), points + column(right), shape.colour);
      }
    }
    for (int64_t x = 0; x < width; ++x) {
      uint32_t even = 0, odd = 0;  // sums of red and blue, of green
      for (int64_t sample = 0; sample < kSamples; ++sample) {
        const uint32_t* points = line_.data() + sample * columns + kSamples * x;
        for (int64_t i = 0; i < kSamples; ++i) {
          even += points[i] & 0x00FF00FF;
          odd += points[i] >> 8 & 0x00FF;
        }
      }
      *pixels++ = static_cast<uint8_t>((even & 0xFFFF) / (kSamples * kSamples));
      *pixels++ = static_cast<uint8_t>(odd / (kSamples * kSamples));
      *pixels++ = static_cast<uint8_t>((even >> 16) / (kSamples * kSamples));
    }
  }
}

}  // namespace weft::car_racing
