// CarRacing-v3: drive round a random track as fast as possible, seen from above, as Gymnasium 1.4's
// box2d/car_racing.py. Box2D's version differs (2.4 here, 2.3 there), and so do pictures by how
// their edges are smoothed and digits are written. Skid marks, which observations do not show, are
// left out.
#include <algorithm>
#include <array>
#include <box2d/box2d.h>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "environments/box2d/box2d_environment.h"
#include "environments/box2d/race_car.h"
#include "environments/box2d/race_drawing.h"
#include "environments/box2d/race_track.h"
#include "environments/box2d/race_view.h"
#include "environments/box2d/world.h"
#include "environments/drawing/canvas.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

using car_racing::Stretch, car_racing::Wheel;

constexpr int64_t kSide = 96;  // of the observation, pixels

// What the car's contacts with tiles come to. A tile is named by the data of its fixture, from 1.
class Race final : public b2ContactListener {
 public:
  Race() {
    track.reserve(car_racing::kMostSteps);
    touched.reserve(car_racing::kMostSteps);
    visited_.reserve(car_racing::kMostSteps);
  }

  // Nothing is touched yet on the track.
  void Start() {
    touched.assign(track.size(), 0);
    visited_.assign(track.size(), 0);
    score = 0;
    visits = 0;
    lap = false;
  }

  void BeginContact(b2Contact* contact) override { Change(*contact, 1); }
  void EndContact(b2Contact* contact) override { Change(*contact, -1); }

  std::vector<Stretch> track;
  std::vector<uint8_t> touched;  // for each tile, by any part of the car
  car_racing::Car car;
  double lap_share = 0.95;  // of the tiles, after which the first one ends the lap
  double score = 0;
  size_t visits = 0;
  bool lap = false;

 private:
  void Change(b2Contact& contact, int change) {
    const b2Fixture *tile = contact.GetFixtureA(), *part = contact.GetFixtureB();
    if (NameOf(*tile) == 0) std::swap(tile, part);
    if (NameOf(*tile) == 0) return;
    const size_t index = NameOf(*tile) - 1;
    touched[index] = 1;
    const auto wheel = std::ranges::find_if(
        car.wheels, [&](const Wheel& candidate) { return candidate.body == part->GetBody(); });
    if (wheel == car.wheels.end()) return;
    wheel->tiles += change;
    if (change < 0 || visited_[index] != 0) return;
    visited_[index] = 1;
    const auto tiles = static_cast<double>(track.size());
    score += 1000.0 / tiles;
    ++visits;
    if (index == 0 && static_cast<double>(visits) / tiles > lap_share) lap = true;
  }

  static size_t NameOf(const b2Fixture& fixture) {
    return const_cast<b2Fixture&>(fixture).GetUserData().pointer;
  }

  std::vector<uint8_t> visited_;  // for each tile, by a wheel
};

class CarRacing final : public Box2dEnvironment {
 public:
  static constexpr double kStepNanoseconds = 150000;

  struct Arguments : Config {
    void Fields(FieldVisitor& v) override {
      v.Field("lap_complete_percent", lap_complete_percent,
              "share of the tiles after which the first one ends the lap", Range::Between(0, 1));
      v.Field("domain_randomize", domain_randomize, "other colours in every episode");
      v.Field("continuous", continuous,
              "steering, gas and brake as real numbers instead of five discrete actions");
    }

    double lap_complete_percent = 0.95;
    bool domain_randomize = false, continuous = true;
  };

  explicit CarRacing(const Arguments& arguments)
      : Box2dEnvironment(MakeSpec(arguments.continuous), 3),
        continuous_(arguments.continuous),
        colourful_(arguments.domain_randomize),
        simulation_(std::make_unique<Simulation>()) {
    simulation_->race.lap_share = arguments.lap_complete_percent;
  }

  void Observe(ObservationRow out) override { Paint(kSide, kSide, out.Leaf<uint8_t>()); }

  void Render(Canvas& canvas) const override {
    canvas.Open(0, 1, 0, 1, kBlack);
    Picture& picture = canvas.picture();
    Paint(picture.width, picture.height, picture.pixels.data());
  }

 protected:
  void Begin(Rng& rng) override {
    auto& [race, world, view] = *simulation_;
    if (colourful_) DrawColours(rng);
    car_racing::DrawTrack(rng, race.track);
    race.Start();
    world.emplace(b2Vec2(0, 0));
    world->SetContactListener(&race);
    MakeRoad();
    race.car.Build(*world, race.track[0].heading, race.track[0].x, race.track[0].y);
    steps_ = 0;
    counted_ = 0;
    Turn();
  }

  // Steering to the left, gas and brake.
  void Record(ActionRow action, Rng&, std::span<double> record) override {
    if (continuous_) {
      record[0] = std::clamp(-action.real(0), -1.0, 1.0);
      for (const int64_t pedal : {1, 2})
        record[static_cast<size_t>(pedal)] = std::clamp(action.real(pedal), 0.0, 1.0);
      return;
    }
    const int64_t choice = action.index();  // nothing, right, left, gas, brake
    record[0] = choice == 1 ? -0.6 : choice == 2 ? 0.6 : 0;
    record[1] = choice == 3 ? 0.2 : 0;
    record[2] = choice == 4 ? 0.8 : 0;
  }

  Outcome Play(std::span<const double> record) override {
    Race& race = simulation_->race;
    race.car.Control(record[0], record[1], record[2]);
    Turn();
    race.score -= 0.1;
    const double gain = race.score - std::exchange(counted_, race.score);
    const b2Vec2 place = race.car.hull->GetPosition();
    const bool lost = std::max(std::abs(place.x), std::abs(place.y)) > car_racing::kPlayfield;
    return {lost ? -100 : gain, lost || race.lap || race.visits == race.track.size()};
  }

 private:
  // The world and what it points to, at a fixed place.
  struct Simulation {
    Race race;
    std::optional<b2World> world;
    car_racing::View view;
  };

  static EnvironmentSpec MakeSpec(bool continuous) {
    const Space action =
        continuous ? Space(Box{.low = {-1, 0, 0}, .high = {1, 1, 1}}) : Space(Discrete{.n = 5});
    return {.id = "CarRacing-v3",
            .observation = {{.name = "observation",
                             .shape = {kSide, kSide, 3},
                             .dtype = DType::kUInt8,
                             .low = {0},
                             .high = {255}}},
            .action = action,
            .time_limit = 1000,
            .reward_threshold = 900,
            .appearance = {.width = 600, .height = 400, .frames_per_second = kStepsPerSecond}};
  }

  void DrawColours(Rng& rng) {
    for (auto* channels : {&palette_.road, &palette_.field}) {
      for (double& channel : *channels) channel = rng.Uniform(0, 210);
    }
    palette_.grass = palette_.field;
    palette_.grass[rng.Below(3)] += 20;
  }

  // Tiles are sensors. The original makes a body of each; those of one body touch no differently.
  void MakeRoad() {
    const b2BodyDef definition;
    b2Body* road = simulation_->world->CreateBody(&definition);
    b2PolygonShape shape;
    b2FixtureDef fixture;
    fixture.shape = &shape;
    fixture.isSensor = true;
    for (const Stretch& step : simulation_->race.track) {
      std::array<b2Vec2, 4> corners;
      for (size_t i = 0; i < corners.size(); ++i) {
        corners[i] = Vector(step.tile[i].x, step.tile[i].y);
      }
      shape.Set(corners.data(), static_cast<int32>(corners.size()));
      ++fixture.userData.pointer;
      road->CreateFixture(&fixture);
    }
  }

  void Turn() {
    car_racing::Car& car = simulation_->race.car;
    car.Step(1 / kStepsPerSecond);
    // In Box2D 2.3 setting a motor wakes its bodies, in 2.4 changing it.
    car.hull->SetAwake(true);
    for (const Wheel& wheel : car.wheels) wheel.body->SetAwake(true);
    Advance(*simulation_->world);
    ++steps_;
  }

  void Paint(int64_t width, int64_t height, uint8_t* pixels) const {
    auto& [race, world, view] = *simulation_;
    if (!world) {
      std::fill_n(pixels, 3 * width * height, uint8_t{0});
      return;
    }
    Draw({.track = race.track,
          .touched = race.touched,
          .car = race.car,
          .palette = palette_,
          .seconds = static_cast<double>(steps_) / kStepsPerSecond,
          .score = race.score},
         view);
    view.Paint(width, height, pixels);
  }

  const bool continuous_, colourful_;
  std::unique_ptr<Simulation> simulation_;
  car_racing::Palette palette_;
  int64_t steps_ = 0;   // of the world
  double counted_ = 0;  // score that rewards have been given for
};

WEFT_REGISTER_ENVIRONMENT(CarRacing, "CarRacing-v3",
                          "drive round a track seen from above: 96 x 96 pixels, 3 real actions")

}  // namespace
}  // namespace weft
