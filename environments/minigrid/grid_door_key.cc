// MiniGrid-DoorKey: take the key to open the door to the room of the goal, as minigrid 3.2's
// envs/doorkey.py. The reward comes at the goal alone.
#include "environments/minigrid/grid_world.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

class GridDoorKey final : public GridWorld {
 public:
  using Arguments = SquareGridArguments;

  explicit GridDoorKey(const Arguments& arguments)
      : GridWorld(arguments, arguments.size, arguments.size, 10 * arguments.size * arguments.size,
                  Rules()) {}

 private:
  void Generate(Rng& rng) override {
    const auto below = [&](int64_t n) {
      return static_cast<int64_t>(rng.Below(static_cast<uint64_t>(n)));
    };
    SurroundWithWalls();
    Set(width() - 2, height() - 2, kGridGoal);
    const int64_t wall = 2 + below(width() - 4);
    Fill({wall, 0, 1, height()}, kGridWall);
    const Rectangle left{0, 0, wall, height()};
    PlaceAgent(left, rng);
    Set(wall, 1 + below(height() - 3),
        {GridObject::kDoor, GridColour::kYellow, DoorState::kLocked});
    Place({GridObject::kKey, GridColour::kYellow}, left, rng);
  }
};

constexpr char kSummary[] = "take the key, open the door, reach the goal: 7 x 7 cells seen";
WEFT_REGISTER_ENVIRONMENT(GridDoorKey, "MiniGrid-DoorKey-5x5-v0", kSummary,
                          "MiniGrid-DoorKey-5x5-v0", 5)
WEFT_REGISTER_ENVIRONMENT(GridDoorKey, "MiniGrid-DoorKey-6x6-v0", kSummary,
                          "MiniGrid-DoorKey-6x6-v0", 6)
WEFT_REGISTER_ENVIRONMENT(GridDoorKey, "MiniGrid-DoorKey-8x8-v0", kSummary,
                          "MiniGrid-DoorKey-8x8-v0", 8)
WEFT_REGISTER_ENVIRONMENT(GridDoorKey, "MiniGrid-DoorKey-16x16-v0", kSummary,
                          "MiniGrid-DoorKey-16x16-v0", 16)

}  // namespace
}  // namespace weft
