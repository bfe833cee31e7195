// MiniGrid-LavaGap: walk through the gap in a wall of lava, which ends the episode when stepped on,
// as minigrid 3.2's envs/lavagap.py.
#include "environments/minigrid/grid_world.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

class GridLavaGap final : public GridWorld {
 public:
  using Arguments = SquareGridArguments;

  explicit GridLavaGap(const Arguments& arguments)
      : GridWorld(arguments, arguments.size, arguments.size, 4 * arguments.size * arguments.size,
                  Rules()) {}

 private:
  void Generate(Rng& rng) override {
    SurroundWithWalls();
    SetAgent(1, 1, 0);
    Set(width() - 2, height() - 2, kGridGoal);
    const int64_t x = 2 + static_cast<int64_t>(rng.Below(static_cast<uint64_t>(width() - 4)));
    const int64_t y = 1 + static_cast<int64_t>(rng.Below(static_cast<uint64_t>(height() - 2)));
    Fill({x, 1, 1, height() - 2}, kGridLava);
    Set(x, y, {});
  }
};

constexpr char kSummary[] = "pass a gap in the lava: 7 x 7 cells seen, 7 actions";
WEFT_REGISTER_ENVIRONMENT(GridLavaGap, "MiniGrid-LavaGapS5-v0", kSummary, "MiniGrid-LavaGapS5-v0",
                          5)
WEFT_REGISTER_ENVIRONMENT(GridLavaGap, "MiniGrid-LavaGapS6-v0", kSummary, "MiniGrid-LavaGapS6-v0",
                          6)
WEFT_REGISTER_ENVIRONMENT(GridLavaGap, "MiniGrid-LavaGapS7-v0", kSummary, "MiniGrid-LavaGapS7-v0",
                          7)

}  // namespace
}  // namespace weft
