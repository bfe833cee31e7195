// MiniGrid-Memory: see a key or a ball, walk down a hallway and turn to the object of the same kind
// at its end, as minigrid 3.2's envs/memory.py. A policy without memory is right half of the time.
#include "environments/minigrid/grid_world.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr GridCell kKeyCell{GridObject::kKey, GridColour::kGreen};
constexpr GridCell kBallCell{GridObject::kBall, GridColour::kGreen};

class GridMemory final : public GridWorld {
 public:
  struct Arguments : GridWorldArguments {
    Arguments(const char* environment_id, int64_t cells, bool random)
        : GridWorldArguments(environment_id), size(cells), random_length(random) {}
    void Fields(FieldVisitor& v) override {
      v.Field("size", size, "cells along a side, walls included, odd", Range::Between(7, 255));
      v.Field("random_length", random_length, "the hallway ends anywhere");
      GridWorldArguments::Fields(v);
    }
    void Check() const override {
      GridWorldArguments::Check();
      if (size % 2 == 0) throw ConfigProblem("size", "must be odd");
    }

    int64_t size;
    bool random_length;
  };

  explicit GridMemory(const Arguments& arguments)
      : GridWorld(arguments, arguments.size, arguments.size, 5 * arguments.size * arguments.size,
                  {.pick_up = false}),
        random_length_(arguments.random_length) {}

 private:
  void Generate(Rng& rng) override {
    const auto below = [&](int64_t n) {
      return static_cast<int64_t>(rng.Below(static_cast<uint64_t>(n)));
    };
    const int64_t middle = height() / 2;
    const int64_t end = random_length_ ? 4 + below(width() - 6) : width() - 3;  // of the hallway
    SurroundWithWalls();
    for (const int64_t side : {-1, 1}) {
      Fill({1, middle + 2 * side, 4, 1}, kGridWall);
      Fill({4, middle + side, end - 4, 1}, kGridWall);
      Set(4, middle + side, kGridWall);
    }
    Fill({end, 0, 1, height()}, kGridWall);
    Set(end, middle, {});
    Fill({end + 2, 0, 1, height()}, kGridWall);
    SetAgent(1 + below(end), middle, 0);
    Set(1, middle - 1, below(2) == 0 ? kKeyCell : kBallCell);
    const bool key_above = below(2) == 0;
    Set(end + 1, middle - 2, key_above ? kKeyCell : kBallCell);
    Set(end + 1, middle + 2, key_above ? kBallCell : kKeyCell);
  }

  // The choice is made next to one of the objects at the end.
  void Judge(int64_t, double& reward, bool& terminal) const override {
    const int64_t side = agent_y() - height() / 2;
    if (side != -1 && side != 1) return;
    const GridCell chosen = At(agent_x(), agent_y() + side);
    if (chosen != kKeyCell && chosen != kBallCell) return;
    terminal = true;
    reward = chosen == At(1, height() / 2 - 1) ? SuccessReward() : 0;
  }

  bool random_length_;
};

constexpr char kSummary[] = "recall an object at the end of a hallway: 7 x 7 cells seen, 7 actions";
WEFT_REGISTER_ENVIRONMENT(GridMemory, "MiniGrid-MemoryS7-v0", kSummary, "MiniGrid-MemoryS7-v0", 7,
                          false)
WEFT_REGISTER_ENVIRONMENT(GridMemory, "MiniGrid-MemoryS9-v0", kSummary, "MiniGrid-MemoryS9-v0", 9,
                          false)
WEFT_REGISTER_ENVIRONMENT(GridMemory, "MiniGrid-MemoryS11-v0", kSummary, "MiniGrid-MemoryS11-v0",
                          11, false)
WEFT_REGISTER_ENVIRONMENT(GridMemory, "MiniGrid-MemoryS13-v0", kSummary, "MiniGrid-MemoryS13-v0",
                          13, false)
WEFT_REGISTER_ENVIRONMENT(GridMemory, "MiniGrid-MemoryS13Random-v0", kSummary,
                          "MiniGrid-MemoryS13Random-v0", 13, true)
WEFT_REGISTER_ENVIRONMENT(GridMemory, "MiniGrid-MemoryS17Random-v0", kSummary,
                          "MiniGrid-MemoryS17Random-v0", 17, true)

}  // namespace
}  // namespace weft
