// MiniGrid-Empty: one room with the goal in its lower right corner, as minigrid 3.2's
// envs/empty.py. The agent starts in the upper left corner or anywhere.
#include "environments/minigrid/grid_world.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

class GridEmpty final : public GridWorld {
 public:
  struct Arguments : SquareGridArguments {
    Arguments(const char* environment_id, int64_t cells, bool random_start)
        : SquareGridArguments(environment_id, cells, 4) {
      if (!random_start) agent_start_pos = {1, 1};
    }
    void Fields(FieldVisitor& v) override {
      v.Field("agent_start_pos", agent_start_pos, "x, y of the agent at first; empty: anywhere",
              Range::Between(1, 253));
      v.Field("agent_start_dir", agent_start_dir,
              "direction of the agent at agent_start_pos: 0 right, 1 down, 2 left, 3 up",
              Range::Between(0, 3));
      SquareGridArguments::Fields(v);
    }
    void Check() const override {
      GridWorldArguments::Check();
      if (agent_start_pos.empty()) return;
      if (agent_start_pos.size() != 2)
        throw ConfigProblem("agent_start_pos", "x and y, or nothing");
      for (const int64_t place : agent_start_pos) {
        if (place > size - 2) throw ConfigProblem("agent_start_pos", "lies in a wall");
      }
    }

    std::vector<int64_t> agent_start_pos;
    int64_t agent_start_dir = 0;
  };

  explicit GridEmpty(const Arguments& arguments)
      : GridWorld(arguments, arguments.size, arguments.size, 4 * arguments.size * arguments.size,
                  {.see_through_walls = true}),
        start_(arguments.agent_start_pos),
        start_direction_(arguments.agent_start_dir) {}

 private:
  void Generate(Rng& rng) override {
    SurroundWithWalls();
    Set(width() - 2, height() - 2, kGridGoal);
    if (start_.empty()) {
      PlaceAgent(rng);
    } else {
      SetAgent(start_[0], start_[1], start_direction_);
    }
  }

  std::vector<int64_t> start_;
  int64_t start_direction_;
};

constexpr char kSummary[] = "walk to the corner of an empty room: 7 x 7 cells seen, 7 actions";
WEFT_REGISTER_ENVIRONMENT(GridEmpty, "MiniGrid-Empty-5x5-v0", kSummary, "MiniGrid-Empty-5x5-v0", 5,
                          false)
WEFT_REGISTER_ENVIRONMENT(GridEmpty, "MiniGrid-Empty-Random-5x5-v0", kSummary,
                          "MiniGrid-Empty-Random-5x5-v0", 5, true)
WEFT_REGISTER_ENVIRONMENT(GridEmpty, "MiniGrid-Empty-6x6-v0", kSummary, "MiniGrid-Empty-6x6-v0", 6,
                          false)
WEFT_REGISTER_ENVIRONMENT(GridEmpty, "MiniGrid-Empty-Random-6x6-v0", kSummary,
                          "MiniGrid-Empty-Random-6x6-v0", 6, true)
WEFT_REGISTER_ENVIRONMENT(GridEmpty, "MiniGrid-Empty-8x8-v0", kSummary, "MiniGrid-Empty-8x8-v0", 8,
                          false)
WEFT_REGISTER_ENVIRONMENT(GridEmpty, "MiniGrid-Empty-16x16-v0", kSummary, "MiniGrid-Empty-16x16-v0",
                          16, false)

}  // namespace
}  // namespace weft
