#include "environments/box2d/race_drawing.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

namespace weft::car_racing {
namespace {

constexpr double kWidth = 1000, kHeight = 800;  // of the original's window, pixels
constexpr double kZoom = 2.7;
constexpr double kPatch = kPlayfield / 20;  // side of a patch of grass, m
constexpr Colour kBlack{0, 0, 0}, kWhite{255, 255, 255};

Colour ColourOf(const std::array<double, 3>& channels, double lighter = 0) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(channels[i] + lighter); };
  return {byte(0), byte(1), byte(2)};
}

// Turns places in the world into shares of the picture.
class Camera {
 public:
  Camera(const Scene& scene, View& view) : view_(view) {
    const double t = scene.seconds;
    const double zoom =
        0.1 * kTrackScale * std::max(1 - t, 0.0) + kZoom * kTrackScale * std::min(t, 1.0);
    const double angle = -scene.car.hull->GetAngle();
    eye_ = scene.car.hull->GetPosition();
    cosine_ = zoom * std::cos(angle);
    sine_ = zoom * std::sin(angle);
  }

  void Add(std::span<const Point> corners, const Colour& colour) const {
    std::array<Point, View::kMaxCorners> places;
    for (size_t i = 0; i < corners.size(); ++i) {
      const double x = corners[i].x - eye_.x, y = corners[i].y - eye_.y;
      // The car is a quarter of the height above the lower edge.
      places[i] = {(kWidth / 2 + x * cosine_ - y * sine_) / kWidth,
                   (kHeight * 3 / 4 - x * sine_ - y * cosine_) / kHeight};
    }
    view_.Add(std::span(places).first(corners.size()), colour);
  }

 private:
  View& view_;
  b2Vec2 eye_{};
  double cosine_, sine_;  // of the turn, pixels per metre
};

void DrawField(const Scene& scene, const Camera& camera) {
  const auto square = [&](double x, double y, double side, const Colour& colour) {
    camera.Add(std::array<Point, 4>{{{x, y}, {x + side, y}, {x + side, y + side}, {x, y + side}}},
               colour);
  };
  square(-kPlayfield, -kPlayfield, 2 * kPlayfield, ColourOf(scene.palette.field));
  for (int x = -20; x < 20; x += 2) {
    for (int y = -20; y < 20; y += 2)
      square(kPatch * x, kPatch * y, kPatch, ColourOf(scene.palette.grass));
  }
}

void DrawRoad(const Scene& scene, const Camera& camera) {
  for (size_t i = 0; i < scene.track.size(); ++i) {
    const Stretch& step = scene.track[i];
    const double lighter = scene.touched[i] != 0 ? 0 : 0.01 * static_cast<double>(i % 3) * 255;
    camera.Add(step.tile, ColourOf(scene.palette.road, lighter));
    if (step.hard_turn) camera.Add(step.border, i % 2 == 0 ? kWhite : Colour{255, 0, 0});
  }
}

void DrawBody(const b2Body& body, const Colour& colour, const Camera& camera) {
  for (const b2Fixture* fixture = body.GetFixtureList(); fixture != nullptr;
       fixture = fixture->GetNext()) {
    const auto& shape = *static_cast<const b2PolygonShape*>(fixture->GetShape());
    std::array<Point, View::kMaxCorners> corners;
    const auto count = static_cast<size_t>(shape.m_count);
    for (size_t i = 0; i < count; ++i) {
      const b2Vec2 place = body.GetWorldPoint(shape.m_vertices[i]);
      corners[i] = {place.x, place.y};
    }
    camera.Add(std::span(corners).first(count), colour);
  }
}

// The bright part of a tyre, which goes round.
void DrawTread(const Wheel& wheel, const Camera& camera) {
  constexpr double kTread = 1.2;  // rad
  std::array<double, 2> along;    // of its edges, from -1 to 1
  int hidden = 0;
  for (size_t edge = 0; edge < 2; ++edge) {
    const double angle = wheel.phase + (edge == 0 ? 0 : kTread);
    along[edge] = std::cos(angle);
    if (std::sin(angle) <= 0) continue;
    ++hidden;
    along[edge] = along[edge] > 0 ? 1 : along[edge] < 0 ? -1 : 0;
  }
  if (hidden == 2) return;
  std::array<Point, 4> corners;
  for (size_t i = 0; i < corners.size(); ++i) {
    const double aside = i == 0 || i == 3 ? -kWheelWidth : kWheelWidth;
    const b2Vec2 place =
        wheel.body->GetWorldPoint({static_cast<float>(aside * kCarSize),
                                   static_cast<float>(kWheelRadius * along[i / 2] * kCarSize)});
    corners[i] = {place.x, place.y};
  }
  camera.Add(corners, {77, 77, 77});
}

// In pixels of the window, y downwards.
void AddBox(double left, double right, double top, double bottom, const Colour& colour,
            View& view) {
  const Point a{left / kWidth, top / kHeight}, b{right / kWidth, bottom / kHeight};
  view.Add(std::array<Point, 4>{{a, {b.x, a.y}, b, {a.x, b.y}}}, colour);
}

// Digits of seven bars, as large as those of the original's font.
void DrawScore(double score, View& view) {
  constexpr double kAdvance = 24.7, kInkWidth = 20, kTop = 731, kInkHeight = 31, kBar = 5;
  // Bars from the highest bit: top, upper right, lower right, bottom, lower left, upper left,
  // middle.
  constexpr uint8_t kBars[] = {0x7E, 0x30, 0x6D, 0x79, 0x33, 0x5B, 0x5F, 0x70, 0x7F, 0x7B};
  constexpr double kMiddle = kTop + kInkHeight / 2, kBottom = kTop + kInkHeight;
  const auto rounded = static_cast<int64_t>(std::nearbyint(score));
  std::string digits = std::to_string(std::abs(rounded));
  const size_t places = rounded < 0 ? 3 : 4;
  if (digits.size() < places) digits.insert(0, places - digits.size(), '0');
  if (rounded < 0) digits.insert(0, "-");
  double left = 60 - kAdvance * static_cast<double>(digits.size()) / 2 + 1;
  for (const char digit : digits) {
    const double right = left + kInkWidth;
    const unsigned bars = digit == '-' ? 1u : kBars[digit - '0'];
    const auto bar = [&](int bit, double x0, double x1, double y0, double y1) {
      if ((bars >> bit & 1) != 0) AddBox(x0, x1, y0, y1, kWhite, view);
    };
    bar(6, left, right, kTop, kTop + kBar);
    bar(5, right - kBar, right, kTop, kMiddle);
    bar(4, right - kBar, right, kMiddle, kBottom);
    bar(3, left, right, kBottom - kBar, kBottom);
    bar(2, left, left + kBar, kMiddle, kBottom);
    bar(1, left, left + kBar, kTop, kMiddle);
    bar(0, left, right, kMiddle - kBar / 2, kMiddle + kBar / 2);
    left += kAdvance;
  }
}

void DrawInstruments(const Scene& scene, View& view) {
  constexpr double kColumn = kWidth / 40, kRow = kHeight / 40, kBase = kHeight - kRow;
  AddBox(0, kWidth, kHeight - 5 * kRow, kHeight, kBlack, view);
  const auto upright = [&](double place, double value, const Colour& colour) {
    const double end = kBase - kRow * value;
    AddBox(place * kColumn, (place + 1) * kColumn, std::min(end, kBase), std::max(end, kBase),
           colour, view);
  };
  const auto lying = [&](double place, double value, const Colour& colour) {
    const double begin = place * kColumn, end = begin + value * kColumn;
    AddBox(std::min(begin, end), std::max(begin, end), kHeight - 4 * kRow, kHeight - 2 * kRow,
           colour, view);
  };
  const Car& car = scene.car;
  upright(5, 0.02 * car.hull->GetLinearVelocity().Length(), kWhite);
  for (size_t i = 0; i < kWheels; ++i) {
    upright(static_cast<double>(7 + i), 0.01 * car.wheels[i].omega,
            {static_cast<uint8_t>(i < 2 ? 0 : 51), 0, 255});
  }
  lying(20, -10.0 * car.wheels[0].joint->GetJointAngle(), {0, 255, 0});
  lying(30, -0.8 * car.hull->GetAngularVelocity(), {255, 0, 0});
}

}  // namespace

void Draw(const Scene& scene, View& view) {
  view.Clear();
  const Camera camera(scene, view);
  DrawField(scene, camera);
  DrawRoad(scene, camera);
  for (const Wheel& wheel : scene.car.wheels) {
    DrawBody(*wheel.body, kBlack, camera);
    DrawTread(wheel, camera);
  }
  DrawBody(*scene.car.hull, {204, 0, 0}, camera);
  DrawInstruments(scene, view);
  DrawScore(scene.score, view);
}

}  // namespace weft::car_racing
