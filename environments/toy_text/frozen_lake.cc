// FrozenLake-v1 and FrozenLake8x8-v1: walk over ice from S to G without falling into a hole H, as
// Gymnasium 1.4's toy_text/frozen_lake.py. On slippery ice a step goes where it was meant to with
// probability success_rate, and to either side of that otherwise.
#include <algorithm>
#include <array>
#include <string>

#include "environments/drawing/canvas.h"
#include "environments/register_environment.h"
#include "environments/toy_text/tabular_environment.h"

namespace weft {
namespace {

const std::vector<std::string>& Map(const std::string& name) {
  static const auto& small = *new std::vector<std::string>{"SFFF",       //
                                                           "FHFH",       //
                                                           "FFFH",       //
                                                           "HFFG"};      //
  static const auto& large = *new std::vector<std::string>{"SFFFFFFF",   //
                                                           "FFFFFFFF",   //
                                                           "FFFHFFFF",   //
                                                           "FFFFFHFF",   //
                                                           "FFFHFFFF",   //
                                                           "FHHFFFHF",   //
                                                           "FHFFHFHF",   //
                                                           "FFFHFFFG"};  //
  return name == "8x8" ? large : small;
}

class FrozenLake final : public TabularEnvironment {
 public:
  struct Arguments : Config {
    Arguments(const char* environment_id, const char* map, int64_t steps, double threshold)
        : id(environment_id), time_limit(steps), reward_threshold(threshold), map_name(map) {}
    void Fields(FieldVisitor& v) override {
      v.Field("desc", desc,
              "rows of a map of its own, of S (start), F (ice), H (hole) and G (goal); empty: "
              "map_name");
      v.Choice("map_name", map_name, {"4x4", "8x8"}, "a map of the original");
      v.Field("is_slippery", is_slippery, "steps may slip to either side");
      v.Field("success_rate", success_rate, "probability that a step on slippery ice does not slip",
              Range::Between(0, 1));
      v.Field("reward_schedule", reward_schedule, "rewards of the goal, a hole and ice");
    }
    void Check() const override {
      if (reward_schedule.size() != 3)
        throw ConfigProblem("reward_schedule", "three numbers: of the goal, a hole and ice");
      if (desc.empty()) return;
      bool start = false;
      for (const std::string& line : desc) {
        start |= line.find('S') != std::string::npos;
        if (line.empty() || line.size() != desc[0].size() ||
            line.find_first_not_of("SFHG") != std::string::npos) {
          throw ConfigProblem(
              "desc", "rows of one length, of the letters S, F, H and G, not \"" + line + "\"");
        }
      }
      if (!start) throw ConfigProblem("desc", "a map needs a start, S");
    }

    const char* id;
    int64_t time_limit;
    double reward_threshold;
    std::vector<std::string> desc;
    std::string map_name;
    bool is_slippery = true;
    double success_rate = 1.0 / 3.0;
    std::vector<double> reward_schedule{1, 0, 0};
  };

  explicit FrozenLake(const Arguments& arguments)
      : FrozenLake(arguments, arguments.desc.empty() ? Map(arguments.map_name) : arguments.desc) {}

  // Actions 0 left, 1 down, 2 right, 3 up; the state is row * columns + column.
  Outcomes OutcomesOf(int64_t state, int64_t action) const override {
    Outcomes outcomes;
    const char tile = tiles_[static_cast<size_t>(state)];
    if (tile == 'G' || tile == 'H') {
      outcomes.Add({.next = state, .terminal = true});
    } else if (!slippery_) {
      outcomes.Add(Move(state, action, 1));
    } else {
      const double slip_rate = (1.0 - success_rate_) / 2.0;
      outcomes.Add(Move(state, (action + 3) % 4, slip_rate));
      outcomes.Add(Move(state, action, success_rate_));
      outcomes.Add(Move(state, (action + 1) % 4, slip_rate));
    }
    return outcomes;
  }
  void Render(Canvas& canvas) const override {
    canvas.Open(0, static_cast<double>(columns_), 0, static_cast<double>(rows_), {220, 235, 250});
    const auto corner = [&](int64_t state) {
      return Point{static_cast<double>(state % columns_),
                   static_cast<double>(rows_ - 1 - state / columns_)};
    };
    for (int64_t state = 0; state < rows_ * columns_; ++state) {
      const Point at = corner(state);
      const char tile = tiles_[static_cast<size_t>(state)];
      if (tile == 'G') canvas.Rectangle(at.x, at.x + 1, at.y, at.y + 1, {0, 200, 0});
      if (tile == 'S') canvas.Rectangle(at.x, at.x + 1, at.y, at.y + 1, {245, 225, 160});
      if (tile == 'H') canvas.Circle({at.x + 0.5, at.y + 0.5}, 0.42, {30, 60, 120});
      canvas.Line(at, {at.x + 1, at.y}, 0.03, {150, 170, 190});
      canvas.Line(at, {at.x, at.y + 1}, 0.03, {150, 170, 190});
    }
    const Point agent = corner(state_);
    canvas.Circle({agent.x + 0.5, agent.y + 0.5}, 0.28, {220, 40, 40});
  }
  // The map, with the agent's cell in brackets.
  std::string Text() const override {
    std::string text;
    for (int64_t state = 0; state < rows_ * columns_; ++state) {
      const std::string tile(1, tiles_[static_cast<size_t>(state)]);
      text += state == state_ ? "[" + tile + "]" : " " + tile + " ";
      if (state % columns_ == columns_ - 1) text += '\n';
    }
    return text;
  }

 private:
  FrozenLake(const Arguments& arguments, const std::vector<std::string>& map)
      : TabularEnvironment({.id = arguments.id,
                            .observation = {},
                            .action = Discrete{.n = 4},
                            .time_limit = arguments.time_limit,
                            .reward_threshold = arguments.reward_threshold,
                            .appearance = {.width = 64 * static_cast<int64_t>(map[0].size()),
                                           .height = 64 * static_cast<int64_t>(map.size()),
                                           .frames_per_second = 4}},
                           static_cast<int64_t>(map.size() * map[0].size()), Starts(map)),
        rows_(static_cast<int64_t>(map.size())),
        columns_(static_cast<int64_t>(map[0].size())),
        slippery_(arguments.is_slippery),
        success_rate_(arguments.success_rate) {
    for (const std::string& line : map) tiles_ += line;
    std::copy_n(arguments.reward_schedule.begin(), rewards_.size(), rewards_.begin());
  }

  static std::vector<int64_t> Starts(const std::vector<std::string>& map) {
    std::vector<int64_t> starts;
    int64_t state = 0;
    for (const std::string& line : map) {
      for (const char tile : line) {
        if (tile == 'S') starts.push_back(state);
        ++state;
      }
    }
    return starts;
  }

  Outcome Move(int64_t state, int64_t direction, double probability) const {
    constexpr int64_t kDown[] = {0, 1, 0, -1}, kRight[] = {-1, 0, 1, 0};
    const int64_t row = std::clamp<int64_t>(state / columns_ + kDown[direction], 0, rows_ - 1);
    const int64_t column =
        std::clamp<int64_t>(state % columns_ + kRight[direction], 0, columns_ - 1);
    const int64_t next = row * columns_ + column;
    const char tile = tiles_[static_cast<size_t>(next)];
    return {.probability = probability,
            .next = next,
            .reward = rewards_[tile == 'G'   ? 0
                               : tile == 'H' ? 1
                                             : 2],
            .terminal = tile == 'G' || tile == 'H'};
  }

  int64_t rows_, columns_;
  std::string tiles_;  // row after row
  bool slippery_;
  double success_rate_;
  std::array<double, 3> rewards_{};  // of goal, hole, ice
};

WEFT_REGISTER_ENVIRONMENT(FrozenLake, "FrozenLake-v1",
                          "cross slippery ice to the goal: 16 states, 4 actions", "FrozenLake-v1",
                          "4x4", 100, 0.70)
WEFT_REGISTER_ENVIRONMENT(FrozenLake, "FrozenLake8x8-v1",
                          "cross slippery ice to the goal: 64 states, 4 actions",
                          "FrozenLake8x8-v1", "8x8", 200, 0.85)

}  // namespace
}  // namespace weft
