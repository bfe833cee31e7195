// MiniGrid-Unlock-v0: take the key to open the door of the room, as minigrid 3.2's envs/unlock.py.
#include "environments/minigrid/grid_world.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr int64_t kRoom = 6;  // cells along a side, walls included

class GridUnlock final : public GridWorld {
 public:
  struct Arguments : GridWorldArguments {
    Arguments() : GridWorldArguments("MiniGrid-Unlock-v0") {}
  };

  explicit GridUnlock(const Arguments& arguments)
      : GridWorld(arguments, 2 * kRoom - 1, kRoom, 8 * kRoom * kRoom, Rules()) {}

 private:
  void Generate(Rng& rng) override {
    const Rectangle room{0, 0, kRoom, kRoom};
    SurroundWithWalls(room);
    SurroundWithWalls({kRoom - 1, 0, kRoom, kRoom});
    const auto colour = static_cast<GridColour>(rng.Below(6));
    Set(kRoom - 1, 1 + static_cast<int64_t>(rng.Below(kRoom - 2)),
        {GridObject::kDoor, colour, DoorState::kLocked});
    Place({GridObject::kKey, colour}, room, rng);
    do {
      PlaceAgent(room, rng);
    } while (InFront().object == GridObject::kKey || InFront().object == GridObject::kDoor);
  }

  void Judge(int64_t action, double& reward, bool& terminal) const override {
    if (action != kToggle || !InFront().IsDoor(DoorState::kOpen)) return;
    terminal = true;
    reward = SuccessReward();
  }
};

WEFT_REGISTER_ENVIRONMENT(GridUnlock, "MiniGrid-Unlock-v0",
                          "take the key and open the door: 7 x 7 cells seen, 7 actions")

}  // namespace
}  // namespace weft
