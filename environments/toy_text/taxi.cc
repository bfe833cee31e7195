// Taxi-v4: fetch a passenger from one of four stands and drive to another (Dietterich 2000), as
// Gymnasium 1.4's toy_text/taxi.py. A step costs 1, a useless pick-up or drop-off 10; the right
// drop-off gives 20 and ends the episode. In rain the taxi drifts to either side of where it
// drives. A fickle passenger may change the destination at the first move after it was picked up.
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "environments/drawing/canvas.h"
#include "environments/register_environment.h"
#include "environments/toy_text/tabular_environment.h"

namespace weft {
namespace {

constexpr int64_t kSize = 5;  // rows and columns of the map
constexpr int64_t kInTaxi = 4;

// East of the cells with a wall, by row.
constexpr std::array<std::array<bool, kSize>, kSize> kWall = {{{false, true, false, false, true},
                                                               {false, true, false, false, true},
                                                               {false, false, false, false, true},
                                                               {true, false, true, false, true},
                                                               {true, false, true, false, true}}};

struct Cell {
  int64_t row, column;
  bool operator==(const Cell&) const = default;
};
constexpr Cell kStands[] = {{0, 0}, {0, 4}, {4, 0}, {4, 3}};  // red, green, yellow, blue

// Where the passenger is (a stand or kInTaxi) and wants to be.
struct Ride {
  Cell taxi;
  int64_t passenger, destination;

  static Ride Of(int64_t state) {
    return {{state / 100, state / 20 % 5}, state / 4 % 5, state % 4};
  }
  int64_t state() const {
    return ((taxi.row * kSize + taxi.column) * 5 + passenger) * 4 + destination;
  }
};

enum Action : int64_t { kSouth, kNorth, kEast, kWest, kPickUp, kDropOff };

// Nothing when the edge of the map or a wall is in the way.
std::optional<Cell> Move(Cell cell, int64_t action) {
  switch (action) {
    case kSouth:
      if (cell.row == kSize - 1) return std::nullopt;
      return Cell{cell.row + 1, cell.column};
    case kNorth:
      if (cell.row == 0) return std::nullopt;
      return Cell{cell.row - 1, cell.column};
    default: {
      const int64_t west = action == kEast ? cell.column : cell.column - 1;  // of the border
      if (west < 0 || kWall[static_cast<size_t>(cell.row)][static_cast<size_t>(west)])
        return std::nullopt;
      return Cell{cell.row, action == kEast ? cell.column + 1 : cell.column - 1};
    }
  }
}

std::vector<int64_t> Starts() {
  std::vector<int64_t> starts;
  for (int64_t state = 0; state < kSize * kSize * 20; ++state) {
    const Ride ride = Ride::Of(state);
    if (ride.passenger != kInTaxi && ride.passenger != ride.destination) starts.push_back(state);
  }
  return starts;
}

class Taxi final : public TabularEnvironment {
 public:
  struct Arguments : Config {
    bool is_rainy = false, fickle_passenger = false;
    double rainy_probability = 0.8, fickle_probability = 0.3;
    bool action_mask = false;
    void Fields(FieldVisitor& v) override {
      v.Field("is_rainy", is_rainy, "the taxi may drift to either side of where it drives");
      v.Field("fickle_passenger", fickle_passenger,
              "the passenger may change the destination once under way");
      v.Field("rainy_probability", rainy_probability,
              "is_rainy: probability that a move does not drift", Range::Between(0, 1));
      v.Field("fickle_probability", fickle_probability,
              "fickle_passenger: probability of a change of mind", Range::Between(0, 1));
      v.Field("action_mask", action_mask,
              "observe which actions change the state (the original's info), so that policies "
              "choose among these alone");
    }
  };

  explicit Taxi(const Arguments& arguments)
      : TabularEnvironment({.id = "Taxi-v4",
                            .observation = Mask(arguments.action_mask),
                            .action = Discrete{.n = 6},
                            .time_limit = 200,
                            .reward_threshold = 8,
                            .appearance = {.width = 400, .height = 400, .frames_per_second = 4}},
                           kSize * kSize * 20, Starts()),
        rainy_(arguments.is_rainy),
        masked_(arguments.action_mask),
        rainy_probability_(arguments.rainy_probability),
        fickle_probability_(arguments.fickle_passenger ? arguments.fickle_probability : 0) {}

  Outcomes OutcomesOf(int64_t state, int64_t action) const override {
    Outcomes outcomes;
    Ride ride = Ride::Of(state);
    if (action <= kWest) {
      AddMoves(ride, action, outcomes);
      return outcomes;
    }
    Outcome outcome{.reward = -10};
    const auto* stand = std::find(std::begin(kStands), std::end(kStands), ride.taxi);
    const int64_t here = stand - std::begin(kStands);  // 4 away from all stands
    if (action == kPickUp && here < kInTaxi && ride.passenger == here) {
      ride.passenger = kInTaxi;
      outcome.reward = -1;
    } else if (action == kDropOff && here < kInTaxi && ride.passenger == kInTaxi) {
      ride.passenger = here;
      outcome.terminal = here == ride.destination;
      outcome.reward = outcome.terminal ? 20 : -1;
    }
    outcome.next = ride.state();
    outcomes.Add(outcome);
    return outcomes;
  }

  void Reset(Rng& rng, StepRow out) override {
    TabularEnvironment::Reset(rng, out);
    fickle_ = fickle_probability_ > 0 && rng.Uniform() < fickle_probability_;
  }

  void Step(ActionRow action, Rng& rng, StepRow out) override {
    const Ride before = Ride::Of(state_);
    TabularEnvironment::Step(action, rng, out);
    Ride ride = Ride::Of(state_);
    if (fickle_ && before.passenger == kInTaxi && ride.taxi != before.taxi) {
      fickle_ = false;
      const auto other = static_cast<int64_t>(rng.Below(3));
      ride.destination = other < before.destination ? other : other + 1;
      state_ = ride.state();
      Observe(out.observation);
    }
  }

  // The number of the state, and 1 when the passenger will change the destination.
  void GetState(std::vector<double>& state) const override {
    TabularEnvironment::GetState(state);
    state.push_back(fickle_ ? 1 : 0);
  }
  void SetState(std::span<const double> state) override {
    WEFT_CHECK_EQ(state.size(), size_t{2}) << "state of Taxi-v4";
    TabularEnvironment::SetState(state.first(1));
    fickle_ = state[1] != 0;
  }
  void Observe(ObservationRow out) override {
    TabularEnvironment::Observe(out);
    if (!masked_) return;
    auto* mask = out.Leaf<uint8_t>(1);
    const Ride ride = Ride::Of(state_);
    const bool stand =
        std::find(std::begin(kStands), std::end(kStands), ride.taxi) != std::end(kStands);
    for (int64_t action = kSouth; action <= kWest; ++action)
      mask[action] = Move(ride.taxi, action).has_value();
    mask[kPickUp] = ride.passenger != kInTaxi && kStands[ride.passenger] == ride.taxi;
    mask[kDropOff] = ride.passenger == kInTaxi && stand;
  }
  void Render(Canvas& canvas) const override {
    constexpr Colour kColours[] = {{230, 60, 60}, {60, 190, 60}, {240, 220, 60}, {60, 90, 230}};
    const Ride ride = Ride::Of(state_);
    const auto middle = [](Cell cell) {
      return Point{static_cast<double>(cell.column) + 0.5,
                   static_cast<double>(kSize - 1 - cell.row) + 0.5};
    };
    const auto square = [&](Point at, double half, const Colour& colour) {
      canvas.Rectangle(at.x - half, at.x + half, at.y - half, at.y + half, colour);
    };
    canvas.Open(-0.1, kSize + 0.1, -0.1, kSize + 0.1, {200, 200, 200});
    for (size_t stand = 0; stand < std::size(kStands); ++stand)
      square(middle(kStands[stand]), 0.45, kColours[stand]);
    square(middle(kStands[ride.destination]), 0.2, kWhite);
    canvas.Line({0, 0}, {0, kSize}, 0.1, kBlack);
    canvas.Line({0, 0}, {kSize, 0}, 0.1, kBlack);
    canvas.Line({0, kSize}, {kSize, kSize}, 0.1, kBlack);
    for (int64_t row = 0; row < kSize; ++row) {
      for (int64_t column = 0; column < kSize; ++column) {
        if (!kWall[static_cast<size_t>(row)][static_cast<size_t>(column)]) continue;
        const Point at = middle({row, column});
        canvas.Line({at.x + 0.5, at.y - 0.5}, {at.x + 0.5, at.y + 0.5}, 0.1, kBlack);
      }
    }
    const bool inside = ride.passenger == kInTaxi;
    square(middle(ride.taxi), 0.35, {255, 160, 0});
    canvas.Circle(middle(inside ? ride.taxi : kStands[ride.passenger]), 0.15, {120, 40, 140});
  }
  // T the taxi, | a wall; the passenger and the destination by the letters of the stands.
  std::string Text() const override {
    constexpr char kLetters[] = "RGYB";
    const Ride ride = Ride::Of(state_);
    std::string text = "+---------+\n";
    for (int64_t row = 0; row < kSize; ++row) {
      text += '|';
      for (int64_t column = 0; column < kSize; ++column) {
        const Cell cell{row, column};
        const auto stand = std::find(std::begin(kStands), std::end(kStands), cell);
        text += cell == ride.taxi            ? 'T'
                : stand != std::end(kStands) ? kLetters[stand - std::begin(kStands)]
                                             : ' ';
        text += kWall[static_cast<size_t>(row)][static_cast<size_t>(column)] ? '|' : ':';
      }
      text += '\n';
    }
    text += "+---------+\npassenger ";
    text +=
        ride.passenger == kInTaxi ? "in the taxi" : std::string("at ") + kLetters[ride.passenger];
    return text + ", wants to " + kLetters[ride.destination];
  }

 private:
  static std::vector<Leaf> Mask(bool masked) {
    if (!masked) return {};
    return {{.name = "action_mask", .shape = {6}, .dtype = DType::kUInt8, .low = {0}, .high = {1}}};
  }

  // A move that is blocked does not drift either, one that drifts into a wall stays.
  void AddMoves(const Ride& ride, int64_t action, Outcomes& outcomes) const {
    constexpr int64_t kLeft[] = {kEast, kWest, kNorth, kSouth};
    constexpr int64_t kRight[] = {kWest, kEast, kSouth, kNorth};
    const bool blocked = !Move(ride.taxi, action);
    const auto add = [&](int64_t direction, double probability) {
      Ride after = ride;
      if (!blocked) after.taxi = Move(ride.taxi, direction).value_or(ride.taxi);
      outcomes.Add({.probability = probability, .next = after.state(), .reward = -1});
    };
    if (!rainy_) return add(action, 1);
    const double drift = (1.0 - rainy_probability_) / 2.0;
    add(action, rainy_probability_);
    add(kLeft[action], drift);
    add(kRight[action], drift);
  }

  bool rainy_, masked_;
  double rainy_probability_, fickle_probability_;  // 0: not fickle
  bool fickle_ = false;                            // the destination will change
};

WEFT_REGISTER_ENVIRONMENT(Taxi, "Taxi-v4", "fetch and deliver a passenger: 500 states, 6 actions")

}  // namespace
}  // namespace weft
