// Base of the MiniGrid family (Chevalier-Boisvert et al. 2023): an agent in a grid of cells turns,
// walks, carries objects and opens doors, and sees a square of cells in front of it, with the rules
// of minigrid 3.2's minigrid_env.py. Derived classes lay out the episodes.
//
// Observation: image, u8 [V, V, 3], for each cell of the view object, colour and state (zeros where
// walls and closed doors hide it), column x before row y, the agent at (V / 2, V - 1) looking to
// row 0, in place of what it carries; direction, i64 []. The mission, a text that is the same in
// every episode, is not observed. Coordinates: x to the right, y down; directions 0 right, 1 down,
// 2 left, 3 up.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "environments/environment.h"

namespace weft {

// MiniGrid's codes.
enum class GridObject : uint8_t {
  kUnseen,
  kEmpty,
  kWall,
  kFloor,
  kDoor,
  kKey,
  kBall,
  kBox,
  kGoal,
  kLava
};
enum class GridColour : uint8_t { kRed, kGreen, kBlue, kPurple, kYellow, kGrey };
enum class DoorState : uint8_t { kOpen, kClosed, kLocked };

struct GridCell {
  GridObject object = GridObject::kEmpty;
  GridColour colour = GridColour::kRed;
  DoorState state = DoorState::kOpen;  // of doors

  bool IsDoor(DoorState door) const { return object == GridObject::kDoor && state == door; }
  bool operator==(const GridCell&) const = default;
};
constexpr GridCell kGridWall{GridObject::kWall, GridColour::kGrey};
constexpr GridCell kGridGoal{GridObject::kGoal, GridColour::kGreen};
constexpr GridCell kGridLava{GridObject::kLava, GridColour::kRed};

struct GridWorldArguments : Config {
  explicit GridWorldArguments(const char* environment_id) : id(environment_id) {}
  void Fields(FieldVisitor& v) override;
  void Check() const override;

  const char* id;
  int64_t max_steps = 0;
  int64_t agent_view_size = 7;
};

// Of a square grid.
struct SquareGridArguments : GridWorldArguments {
  SquareGridArguments(const char* environment_id, int64_t cells, int64_t least = 5)
      : GridWorldArguments(environment_id), size(cells), least_size(least) {}
  void Fields(FieldVisitor& v) override;

  int64_t size;
  int64_t least_size;
};

class GridWorld : public Environment {
 public:
  static constexpr double kStepNanoseconds = 250;

  const EnvironmentSpec& spec() const final { return *spec_; }
  void Reset(Rng& rng, StepRow out) final;
  void Step(ActionRow action, Rng& rng, StepRow out) final;

  // Agent x, y, direction; object, colour and state of what it carries, zeros for nothing; steps of
  // the episode; object, colour and state of each cell, column by column.
  void GetState(std::vector<double>& state) const final;
  void SetState(std::span<const double> state) final;
  void Observe(ObservationRow out) final;
  // What the agent saw last is lit.
  void Render(Canvas& canvas) const final;
  std::string Text() const final;

 protected:
  struct Rectangle {
    int64_t x, y, width, height;
  };

  struct Rules {
    bool see_through_walls = false;
    bool pick_up = true;  // objects can be carried
  };
  enum Action : int64_t { kLeft, kRight, kForward, kPickUp, kDrop, kToggle, kDone, kActions };

  // max_steps: the original's limit, in force when the arguments give none.
  GridWorld(const GridWorldArguments& arguments, int64_t width, int64_t height, int64_t max_steps,
            Rules rules);

  // Lays out an episode in a grid of empty cells.
  virtual void Generate(Rng& rng) = 0;
  // After a step: tasks that end elsewhere than at a goal or in lava change both. Depends on the
  // state alone.
  virtual void Judge(int64_t action, double& reward, bool& terminal) const {
    (void)action, (void)reward, (void)terminal;
  }

  int64_t width() const { return width_; }
  int64_t height() const { return height_; }
  void Set(int64_t x, int64_t y, const GridCell& cell) {
    cells_[static_cast<size_t>(x * height_ + y)] = cell;
  }
  // A wall outside the grid.
  GridCell At(int64_t x, int64_t y) const;
  int64_t agent_x() const { return x_; }
  int64_t agent_y() const { return y_; }
  GridCell InFront() const;
  // Of success now: 1 at once, 0.1 in the last step.
  double SuccessReward() const {
    return 1 - 0.9 * (static_cast<double>(steps_) / static_cast<double>(max_steps_));
  }
  void Fill(const Rectangle& area, const GridCell& cell);
  void SurroundWithWalls(const Rectangle& room);
  void SurroundWithWalls() { SurroundWithWalls({0, 0, width_, height_}); }
  // Uniform over the empty cells of the area without the agent. Throws Error(kInvalidArgument) when
  // it finds none.
  void Place(const GridCell& cell, const Rectangle& area, Rng& rng);
  void Place(const GridCell& cell, Rng& rng) { Place(cell, {0, 0, width_, height_}, rng); }
  void SetAgent(int64_t x, int64_t y, int64_t direction);
  // Anywhere that Place would choose, in a random direction.
  void PlaceAgent(const Rectangle& area, Rng& rng);
  void PlaceAgent(Rng& rng) { PlaceAgent({0, 0, width_, height_}, rng); }

 private:
  struct Position {
    int64_t x, y;
  };

  Position Ahead() const;                       // in front of the agent
  Position InView(int64_t i, int64_t j) const;  // of the view's column i and row j
  Position EmptyPosition(const Rectangle& area, Rng& rng);
  void HideUnseen(uint8_t* image);

  int64_t width_, height_, view_, max_steps_;
  Rules rules_;
  std::unique_ptr<EnvironmentSpec> spec_;
  std::vector<GridCell> cells_;   // [width, height]
  std::vector<uint8_t> visible_;  // [V, V], of HideUnseen
  int64_t x_ = 0, y_ = 0, direction_ = 0;
  GridCell carried_;  // kEmpty: nothing
  int64_t steps_ = 0;
};

}  // namespace weft
