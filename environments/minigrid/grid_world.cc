#include "environments/minigrid/grid_world.h"

#include <algorithm>

#include "base/check.h"
#include "environments/minigrid/grid_drawing.h"

namespace weft {
namespace {

constexpr int64_t kAcross[] = {1, 0, -1, 0}, kDown[] = {0, 1, 0, -1};  // of the directions
constexpr int64_t kTile = 32;                                          // pixels of a cell's side
constexpr size_t kHeader = 7;          // numbers of a state before the cells
constexpr int kMostTries = 1'000'000;  // to find an empty cell

bool SeeThrough(const uint8_t* cell) {
  const auto object = static_cast<GridObject>(cell[0]);
  const bool open = static_cast<DoorState>(cell[2]) == DoorState::kOpen;
  return object != GridObject::kWall && (object != GridObject::kDoor || open);
}

bool CanStandOn(const GridCell& cell) {
  switch (cell.object) {
    case GridObject::kEmpty:
    case GridObject::kFloor:
    case GridObject::kGoal:
    case GridObject::kLava:
      return true;
    default:
      return cell.IsDoor(DoorState::kOpen);
  }
}

bool CanCarry(const GridCell& cell) {
  return cell.object == GridObject::kKey || cell.object == GridObject::kBall ||
         cell.object == GridObject::kBox;
}

void Encode(const GridCell& cell, uint8_t* code) {
  code[0] = static_cast<uint8_t>(cell.object);
  code[1] = static_cast<uint8_t>(cell.colour);
  code[2] = static_cast<uint8_t>(cell.state);
}

void Append(const GridCell& cell, std::vector<double>& state) {
  uint8_t code[3];
  Encode(cell, code);
  state.insert(state.end(), code, code + 3);
}

}  // namespace

void GridWorldArguments::Fields(FieldVisitor& v) {
  v.Field("max_steps", max_steps,
          "steps of an episode, on which the reward depends; 0: as many as "
          "the original allows",
          Range::Between(0, 1e9));
  v.Field("agent_view_size", agent_view_size, "cells across the square that the agent sees, odd",
          Range::Between(3, 63));
}

void SquareGridArguments::Fields(FieldVisitor& v) {
  v.Field("size", size, "cells along a side, walls included",
          Range::Between(static_cast<double>(least_size), 255));
  GridWorldArguments::Fields(v);
}

void GridWorldArguments::Check() const {
  if (agent_view_size % 2 == 0) throw ConfigProblem("agent_view_size", "must be odd");
}

GridWorld::GridWorld(const GridWorldArguments& arguments, int64_t width, int64_t height,
                     int64_t max_steps, Rules rules)
    : width_(width),
      height_(height),
      view_(arguments.agent_view_size),
      max_steps_(arguments.max_steps > 0 ? arguments.max_steps : max_steps),
      rules_(rules),
      spec_(std::make_unique<EnvironmentSpec>()),
      cells_(static_cast<size_t>(width * height)),
      visible_(static_cast<size_t>(view_ * view_)) {
  *spec_ = {
      .id = arguments.id,
      .observation =
          {{.name = "image",
            .shape = {view_, view_, 3},
            .dtype = DType::kUInt8,
            .low = {0},
            .high = {255}},
           {.name = "direction", .shape = {}, .dtype = DType::kInt64, .low = {0}, .high = {3}}},
      .action = Discrete{.n = kActions},
      .time_limit = max_steps_,
      .appearance = {.width = kTile * width, .height = kTile * height, .frames_per_second = 10}};
}

void GridWorld::Reset(Rng& rng, StepRow out) {
  std::fill(cells_.begin(), cells_.end(), GridCell{});
  x_ = y_ = -1;
  carried_ = {};
  steps_ = 0;
  Generate(rng);
  Observe(out.observation);
  out.First();
}

void GridWorld::Step(ActionRow action, Rng&, StepRow out) {
  ++steps_;
  const Position ahead = Ahead();
  const GridCell front = At(ahead.x, ahead.y);
  double reward = 0;
  bool terminal = false;
  switch (action.index()) {
    case kLeft:
      direction_ = (direction_ + 3) % 4;
      break;
    case kRight:
      direction_ = (direction_ + 1) % 4;
      break;
    case kForward:
      if (!CanStandOn(front)) break;
      x_ = ahead.x;
      y_ = ahead.y;
      terminal = front.object == GridObject::kGoal || front.object == GridObject::kLava;
      if (front.object == GridObject::kGoal) reward = SuccessReward();
      break;
    case kPickUp:
      if (!rules_.pick_up || !CanCarry(front) || carried_.object != GridObject::kEmpty) break;
      carried_ = front;
      Set(ahead.x, ahead.y, {});
      break;
    case kDrop:
      if (front.object != GridObject::kEmpty || carried_.object == GridObject::kEmpty) break;
      Set(ahead.x, ahead.y, carried_);
      carried_ = {};
      break;
    case kToggle: {
      GridCell changed = front;
      const bool key = carried_.object == GridObject::kKey && carried_.colour == front.colour;
      if (front.object == GridObject::kBox) {
        changed = {};  // boxes are empty
      } else if (front.IsDoor(DoorState::kOpen)) {
        changed.state = DoorState::kClosed;
      } else if (front.IsDoor(DoorState::kClosed) || (front.IsDoor(DoorState::kLocked) && key)) {
        changed.state = DoorState::kOpen;
      }
      if (changed != front) Set(ahead.x, ahead.y, changed);
      break;
    }
    default:  // kDone changes nothing
      break;
  }
  Judge(action.index(), reward, terminal);
  Observe(out.observation);
  out.Next(reward, terminal);
}

void GridWorld::GetState(std::vector<double>& state) const {
  state.assign({static_cast<double>(x_), static_cast<double>(y_), static_cast<double>(direction_)});
  if (carried_.object == GridObject::kEmpty) {
    state.insert(state.end(), 3, 0);
  } else {
    Append(carried_, state);
  }
  state.push_back(static_cast<double>(steps_));
  for (const GridCell& cell : cells_) Append(cell, state);
}

void GridWorld::SetState(std::span<const double> state) {
  WEFT_CHECK_EQ(state.size(), kHeader + 3 * cells_.size()) << "state of " << spec_->id;
  const auto whole = [&](size_t i, double most) {
    WEFT_CHECK(state[i] >= 0 && state[i] <= most) << "state of " << spec_->id << ": value " << i
                                                  << " is " << state[i] << ", not 0 to " << most;
    return static_cast<int64_t>(state[i]);
  };
  const auto cell = [&](size_t i) {
    const auto object = static_cast<GridObject>(whole(i, static_cast<double>(GridObject::kLava)));
    return GridCell{object == GridObject::kUnseen ? GridObject::kEmpty : object,
                    static_cast<GridColour>(whole(i + 1, static_cast<double>(GridColour::kGrey))),
                    static_cast<DoorState>(whole(i + 2, static_cast<double>(DoorState::kLocked)))};
  };
  x_ = whole(0, static_cast<double>(width_ - 1));
  y_ = whole(1, static_cast<double>(height_ - 1));
  direction_ = whole(2, 3);
  carried_ = cell(3);
  steps_ = whole(6, 1e15);
  for (size_t i = 0; i < cells_.size(); ++i) cells_[i] = cell(kHeader + 3 * i);
}

void GridWorld::Observe(ObservationRow out) {
  auto* image = out.Leaf<uint8_t>(0);
  for (int64_t i = 0; i < view_; ++i) {
    for (int64_t j = 0; j < view_; ++j) {
      const Position cell = InView(i, j);
      Encode(At(cell.x, cell.y), image + (i * view_ + j) * 3);
    }
  }
  if (!rules_.see_through_walls) HideUnseen(image);
  Encode(carried_, image + (view_ / 2 * view_ + view_ - 1) * 3);
  *out.Leaf<int64_t>(1) = direction_;
}

// Sight spreads from the agent row by row, away from it, to the neighbours of cells that can be
// seen through: along the row first to the right, then to the left, and into the next row.
void GridWorld::HideUnseen(uint8_t* image) {
  std::fill(visible_.begin(), visible_.end(), uint8_t{0});
  const auto at = [&](int64_t i, int64_t j) -> uint8_t& {
    return visible_[static_cast<size_t>(i * view_ + j)];
  };
  at(view_ / 2, view_ - 1) = 1;
  for (int64_t j = view_ - 1; j >= 0; --j) {
    const auto spread = [&](int64_t i, int64_t side) {
      if (at(i, j) == 0 || !SeeThrough(image + (i * view_ + j) * 3)) return;
      at(i + side, j) = 1;
      if (j > 0) at(i, j - 1) = at(i + side, j - 1) = 1;
    };
    for (int64_t i = 0; i < view_ - 1; ++i) spread(i, 1);
    for (int64_t i = view_ - 1; i > 0; --i) spread(i, -1);
  }
  for (size_t cell = 0; cell < visible_.size(); ++cell) {
    if (visible_[cell] == 0) std::fill_n(image + 3 * cell, 3, uint8_t{0});
  }
}

GridCell GridWorld::At(int64_t x, int64_t y) const {
  if (x < 0 || x >= width_ || y < 0 || y >= height_) return kGridWall;
  return cells_[static_cast<size_t>(x * height_ + y)];
}

GridCell GridWorld::InFront() const {
  const Position ahead = Ahead();
  return At(ahead.x, ahead.y);
}

GridWorld::Position GridWorld::InView(int64_t i, int64_t j) const {
  const int64_t forward_x = kAcross[direction_], forward_y = kDown[direction_];
  const int64_t right_x = -forward_y, right_y = forward_x;
  const int64_t forward = view_ - 1 - j, right = i - view_ / 2;
  return {x_ + forward * forward_x + right * right_x, y_ + forward * forward_y + right * right_y};
}

void GridWorld::Render(Canvas& canvas) const {
  canvas.Open(0, static_cast<double>(width_), 0, static_cast<double>(height_), kBlack);
  const auto corner = [&](int64_t x, int64_t y) {
    return Point{static_cast<double>(x), static_cast<double>(height_ - 1 - y)};
  };
  for (int64_t x = 0; x < width_; ++x) {
    for (int64_t y = 0; y < height_; ++y) DrawGridCell(At(x, y), corner(x, y), canvas);
  }
  DrawGridAgent(direction_, corner(x_, y_), canvas);
  for (int64_t i = 0; i < view_; ++i) {
    for (int64_t j = 0; j < view_; ++j) {
      const Position cell = InView(i, j);
      if (cell.x < 0 || cell.x >= width_ || cell.y < 0 || cell.y >= height_) continue;
      const bool seen = visible_[static_cast<size_t>(i * view_ + j)] != 0;
      if (!seen && !rules_.see_through_walls) continue;
      const Point at = corner(cell.x, cell.y);
      canvas.Rectangle(at.x, at.x + 1, at.y, at.y + 1, {255, 255, 255, 0.3});
    }
  }
}

std::string GridWorld::Text() const {
  std::string text;
  for (int64_t y = 0; y < height_; ++y) {
    for (int64_t x = 0; x < width_; ++x)
      text += x == x_ && y == y_ ? GridAgentText(direction_) : GridCellText(At(x, y));
    text += '\n';
  }
  if (carried_.object != GridObject::kEmpty) text += "carries " + GridCellText(carried_) + '\n';
  return text;
}

GridWorld::Position GridWorld::Ahead() const {
  return {x_ + kAcross[direction_], y_ + kDown[direction_]};
}

void GridWorld::Fill(const Rectangle& area, const GridCell& cell) {
  for (int64_t x = area.x; x < area.x + area.width; ++x) {
    for (int64_t y = area.y; y < area.y + area.height; ++y) Set(x, y, cell);
  }
}

void GridWorld::SurroundWithWalls(const Rectangle& room) {
  Fill({room.x, room.y, room.width, 1}, kGridWall);
  Fill({room.x, room.y + room.height - 1, room.width, 1}, kGridWall);
  Fill({room.x, room.y, 1, room.height}, kGridWall);
  Fill({room.x + room.width - 1, room.y, 1, room.height}, kGridWall);
}

GridWorld::Position GridWorld::EmptyPosition(const Rectangle& area, Rng& rng) {
  for (int i = 0; i < kMostTries; ++i) {
    const Position position{
        area.x + static_cast<int64_t>(rng.Below(static_cast<uint64_t>(area.width))),
        area.y + static_cast<int64_t>(rng.Below(static_cast<uint64_t>(area.height)))};
    if (At(position.x, position.y).object == GridObject::kEmpty &&
        (position.x != x_ || position.y != y_)) {
      return position;
    }
  }
  throw Error(ErrorCode::kInvalidArgument, spec_->id + ": there is no empty cell to place things");
}

void GridWorld::Place(const GridCell& cell, const Rectangle& area, Rng& rng) {
  const Position position = EmptyPosition(area, rng);
  Set(position.x, position.y, cell);
}

void GridWorld::SetAgent(int64_t x, int64_t y, int64_t direction) {
  x_ = x;
  y_ = y;
  direction_ = direction;
}

void GridWorld::PlaceAgent(const Rectangle& area, Rng& rng) {
  const Position position = EmptyPosition(area, rng);
  SetAgent(position.x, position.y, static_cast<int64_t>(rng.Below(4)));
}

}  // namespace weft
