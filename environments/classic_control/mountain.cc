#include "environments/classic_control/mountain.h"

#include <cmath>
#include <vector>

#include "environments/drawing/canvas.h"

namespace weft {
namespace {

double Height(double position) {
  return std::sin(3 * position) * 0.45 + 0.55;
}

}  // namespace

void DrawMountain(double position, double least, double most, double goal, Canvas& canvas) {
  constexpr int kSegments = 100;
  constexpr double kLine = 0.005, kPole = 0.15;                                  // m
  constexpr double kLength = 0.12, kTop = 0.09, kBottom = 0.03, kWheel = 0.024;  // of the car, m
  canvas.Open(least, most, 0, 1.2, kWhite);
  std::vector<Point> track;
  for (int i = 0; i <= kSegments; ++i) {
    const double x = least + (most - least) * i / kSegments;
    track.push_back({x, Height(x)});
  }
  canvas.Polyline(track, kLine, kBlack);

  const double slope = std::atan(3 * 0.45 * std::cos(3 * position));
  const double cosine = std::cos(slope), sine = std::sin(slope);
  const auto at = [&](double along, double up) {
    return Point{position + along * cosine - up * sine,
                 Height(position) + along * sine + up * cosine};
  };
  canvas.Polygon({at(-kLength / 2, kBottom), at(kLength / 2, kBottom), at(kLength / 2, kTop),
                  at(-kLength / 2, kTop)},
                 kBlack);
  for (const double side : {-1.0, 1.0}) {
    canvas.Circle(at(side * kLength / 4, kWheel), kWheel, {128, 128, 128});
  }

  const double foot = Height(goal), tip = foot + kPole;
  canvas.Line({goal, foot}, {goal, tip}, kLine, kBlack);
  canvas.Polygon({{goal, tip}, {goal, tip - 0.03}, {goal + 0.075, tip - 0.015}}, {204, 204, 0});
}

}  // namespace weft
