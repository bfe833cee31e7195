// CliffWalking-v1 and CliffWalkingSlippery-v1: walk from the lower left corner of a 4 x 12 grid to
// the lower right one along a cliff (Sutton and Barto 2018, example 6.6), as Gymnasium 1.4's
// toy_text/cliffwalking.py. A step costs 1; a fall costs 100 and leads back to the start, and the
// episode goes on. There is no time limit.
#include <algorithm>
#include <string>

#include "environments/drawing/canvas.h"
#include "environments/register_environment.h"
#include "environments/toy_text/tabular_environment.h"

namespace weft {
namespace {

constexpr int64_t kRows = 4, kColumns = 12;
constexpr int64_t kStart = 3 * kColumns, kGoal = kRows * kColumns - 1;

class CliffWalking final : public TabularEnvironment {
 public:
  struct Arguments : Config {
    Arguments(const char* environment_id, bool slippery)
        : id(environment_id), is_slippery(slippery) {}
    void Fields(FieldVisitor& v) override {
      v.Field("is_slippery", is_slippery,
              "steps go to either side of where they were meant to, with probability 1/3 each");
    }

    const char* id;
    bool is_slippery;
  };

  explicit CliffWalking(const Arguments& arguments)
      : TabularEnvironment(
            {.id = arguments.id,
             .observation = {},
             .action = Discrete{.n = 4},
             .appearance = {.width = 50 * kColumns, .height = 50 * kRows, .frames_per_second = 4}},
            kRows * kColumns, {kStart}),
        slippery_(arguments.is_slippery) {}

  // Actions 0 up, 1 right, 2 down, 3 left; the state is row * 12 + column.
  Outcomes OutcomesOf(int64_t state, int64_t action) const override {
    Outcomes outcomes;
    if (slippery_) {
      for (const int64_t turn : {3, 0, 1}) outcomes.Add(Move(state, (action + turn) % 4, 1.0 / 3));
    } else {
      outcomes.Add(Move(state, action, 1));
    }
    return outcomes;
  }
  void Render(Canvas& canvas) const override {
    canvas.Open(0, kColumns, 0, kRows, {120, 170, 90});
    const auto corner = [](int64_t state) {
      return Point{static_cast<double>(state % kColumns),
                   static_cast<double>(kRows - 1 - state / kColumns)};
    };
    const Point start = corner(kStart), goal = corner(kGoal), agent = corner(state_);
    canvas.Rectangle(start.x + 1, goal.x, 0, 1, {90, 60, 40});
    canvas.Rectangle(goal.x, goal.x + 1, 0, 1, {0, 200, 0});
    for (int64_t line = 1; line < kColumns; ++line) {
      const auto at = static_cast<double>(line);
      canvas.Line({at, 0}, {at, kRows}, 0.03, kBlack);
      if (line < kRows) canvas.Line({0, at}, {kColumns, at}, 0.03, kBlack);
    }
    canvas.Circle({agent.x + 0.5, agent.y + 0.5}, 0.3, {220, 40, 40});
  }
  // o the agent, C the cliff, T the goal.
  std::string Text() const override {
    std::string text;
    for (int64_t state = 0; state < kRows * kColumns; ++state) {
      const bool cliff = state > kStart && state < kGoal;
      text += state == state_ ? 'o' : cliff ? 'C' : state == kGoal ? 'T' : 'x';
      text += state % kColumns == kColumns - 1 ? '\n' : ' ';
    }
    return text;
  }

 private:
  static Outcome Move(int64_t state, int64_t direction, double probability) {
    constexpr int64_t kDown[] = {-1, 0, 1, 0}, kRight[] = {0, 1, 0, -1};
    const int64_t row = std::clamp<int64_t>(state / kColumns + kDown[direction], 0, kRows - 1);
    const int64_t column =
        std::clamp<int64_t>(state % kColumns + kRight[direction], 0, kColumns - 1);
    const int64_t next = row * kColumns + column;
    if (next > kStart && next < kGoal)
      return {.probability = probability, .next = kStart, .reward = -100};
    return {.probability = probability, .next = next, .reward = -1, .terminal = next == kGoal};
  }

  bool slippery_;
};

WEFT_REGISTER_ENVIRONMENT(CliffWalking, "CliffWalking-v1",
                          "walk along a cliff: 48 states, 4 actions; set a time limit",
                          "CliffWalking-v1", false)
WEFT_REGISTER_ENVIRONMENT(CliffWalking, "CliffWalkingSlippery-v1",
                          "walk along a slippery cliff: 48 states, 4 actions; set a time limit",
                          "CliffWalkingSlippery-v1", true)

}  // namespace
}  // namespace weft
