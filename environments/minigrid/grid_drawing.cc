#include "environments/minigrid/grid_drawing.h"

#include <cmath>
#include <numbers>

namespace weft {
namespace {

constexpr Colour kGrey{100, 100, 100}, kOrange{255, 128, 0};

Colour ColourOf(GridColour colour) {
  switch (colour) {
    case GridColour::kRed:
      return {255, 0, 0};
    case GridColour::kGreen:
      return {0, 255, 0};
    case GridColour::kBlue:
      return {0, 0, 255};
    case GridColour::kPurple:
      return {112, 39, 195};
    case GridColour::kYellow:
      return {255, 255, 0};
    default:
      return kGrey;
  }
}

Colour Dimmed(const Colour& colour, double share) {
  const auto dim = [&](uint8_t value) { return static_cast<uint8_t>(value * share); };
  return {dim(colour.red), dim(colour.green), dim(colour.blue)};
}

// Draws in the coordinates of minigrid's tiles: (0, 0) is the upper left corner, (1, 1) the lower
// right one.
class Tile {
 public:
  Tile(Point corner, Canvas& canvas) : corner_(corner), canvas_(canvas) {}

  void Box(double left, double right, double top, double bottom, const Colour& colour) const {
    canvas_.Rectangle(corner_.x + left, corner_.x + right, corner_.y + 1 - bottom,
                      corner_.y + 1 - top, colour);
  }
  void Disc(double x, double y, double radius, const Colour& colour) const {
    canvas_.Circle(At(x, y), radius, colour);
  }
  Point At(double x, double y) const { return {corner_.x + x, corner_.y + 1 - y}; }
  Canvas& canvas() const { return canvas_; }

 private:
  const Point corner_;
  Canvas& canvas_;
};

void DrawDoor(DoorState state, const Colour& colour, const Tile& tile) {
  switch (state) {
    case DoorState::kOpen:
      tile.Box(0.88, 1, 0, 1, colour);
      tile.Box(0.92, 0.96, 0.04, 0.96, kBlack);
      return;
    case DoorState::kClosed:
      tile.Box(0, 1, 0, 1, colour);
      tile.Box(0.04, 0.96, 0.04, 0.96, kBlack);
      tile.Box(0.08, 0.92, 0.08, 0.92, colour);
      tile.Box(0.12, 0.88, 0.12, 0.88, kBlack);
      tile.Disc(0.75, 0.5, 0.08, colour);
      return;
    case DoorState::kLocked:
      tile.Box(0, 1, 0, 1, colour);
      tile.Box(0.06, 0.94, 0.06, 0.94, Dimmed(colour, 0.45));
      tile.Box(0.52, 0.75, 0.5, 0.56, colour);
      return;
  }
}

void DrawKey(const Colour& colour, const Tile& tile) {
  tile.Box(0.5, 0.63, 0.31, 0.88, colour);
  tile.Box(0.38, 0.5, 0.59, 0.66, colour);
  tile.Box(0.38, 0.5, 0.81, 0.88, colour);
  tile.Disc(0.56, 0.28, 0.19, colour);
  tile.Disc(0.56, 0.28, 0.064, kBlack);
}

void DrawLava(const Tile& tile) {
  tile.Box(0, 1, 0, 1, kOrange);
  for (const double y : {0.3, 0.5, 0.7}) {
    const Point wave[] = {tile.At(0.1, y), tile.At(0.3, y - 0.1), tile.At(0.5, y + 0.1),
                          tile.At(0.7, y - 0.1), tile.At(0.9, y)};
    tile.canvas().Polyline(wave, 0.06, kBlack);
  }
}

}  // namespace

void DrawGridCell(const GridCell& cell, Point corner, Canvas& canvas) {
  constexpr double kLine = 0.031;
  const Tile tile(corner, canvas);
  const Colour colour = ColourOf(cell.colour);
  tile.Box(0, kLine, 0, 1, kGrey);
  tile.Box(0, 1, 0, kLine, kGrey);
  switch (cell.object) {
    case GridObject::kUnseen:
    case GridObject::kEmpty:
      return;
    case GridObject::kWall:
      return tile.Box(0, 1, 0, 1, colour);
    case GridObject::kFloor:
      return tile.Box(kLine, 1, kLine, 1, Dimmed(colour, 0.5));
    case GridObject::kDoor:
      return DrawDoor(cell.state, colour, tile);
    case GridObject::kKey:
      return DrawKey(colour, tile);
    case GridObject::kBall:
      return tile.Disc(0.5, 0.5, 0.31, colour);
    case GridObject::kBox:
      tile.Box(0.12, 0.88, 0.12, 0.88, colour);
      tile.Box(0.18, 0.82, 0.18, 0.82, kBlack);
      return tile.Box(0.16, 0.84, 0.47, 0.53, colour);
    case GridObject::kGoal:
      return tile.Box(0, 1, 0, 1, colour);
    case GridObject::kLava:
      return DrawLava(tile);
  }
}

void DrawGridAgent(int64_t direction, Point corner, Canvas& canvas) {
  // Clockwise from right.
  const double angle = -std::numbers::pi / 2 * static_cast<double>(direction);
  const Point middle{corner.x + 0.5, corner.y + 0.5};
  const auto turned = [&](double right, double up) {
    return Point{middle.x + right * std::cos(angle) - up * std::sin(angle),
                 middle.y + right * std::sin(angle) + up * std::cos(angle)};
  };
  canvas.Polygon({turned(-0.38, 0.31), turned(0.37, 0), turned(-0.38, -0.31)}, {255, 0, 0});
}

std::string GridCellText(const GridCell& cell) {
  constexpr char kObjects[] = " _WFDABCGV";  // in the order of GridObject
  constexpr char kColours[] = "RGBPYG";      // and of GridColour
  const char colour = kColours[static_cast<size_t>(cell.colour)];
  if (cell.object == GridObject::kUnseen || cell.object == GridObject::kEmpty) return "  ";
  if (cell.IsDoor(DoorState::kOpen)) return "__";
  if (cell.IsDoor(DoorState::kLocked)) return std::string{'L', colour};
  return {kObjects[static_cast<size_t>(cell.object)], colour};
}

std::string GridAgentText(int64_t direction) {
  constexpr const char* kArrows[] = {">>", "VV", "<<", "^^"};
  return kArrows[direction];
}

}  // namespace weft
