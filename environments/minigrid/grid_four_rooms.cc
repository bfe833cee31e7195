// MiniGrid-FourRooms-v0: four rooms joined by four gaps (Sutton, Precup and Singh 1999), agent and
// goal anywhere, as minigrid 3.2's envs/fourrooms.py.
#include "environments/minigrid/grid_world.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr int64_t kSize = 19, kRoom = kSize / 2;

class GridFourRooms final : public GridWorld {
 public:
  struct Arguments : GridWorldArguments {
    Arguments() : GridWorldArguments("MiniGrid-FourRooms-v0") {}
  };

  explicit GridFourRooms(const Arguments& arguments)
      : GridWorld(arguments, kSize, kSize, 100, Rules()) {}

 private:
  void Generate(Rng& rng) override {
    SurroundWithWalls();
    Fill({kRoom, 0, 1, kSize}, kGridWall);
    Fill({0, kRoom, kSize, 1}, kGridWall);
    const auto inside = [&] { return 1 + static_cast<int64_t>(rng.Below(kRoom - 1)); };
    for (const int64_t room : {int64_t{0}, kRoom}) {
      Set(kRoom, room + inside(), {});
      Set(room + inside(), kRoom, {});
    }
    PlaceAgent(rng);
    Place(kGridGoal, rng);
  }
};

WEFT_REGISTER_ENVIRONMENT(GridFourRooms, "MiniGrid-FourRooms-v0",
                          "find the goal in four rooms: 7 x 7 cells seen, 7 actions")

}  // namespace
}  // namespace weft
