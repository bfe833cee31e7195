// LunarLander-v3 and LunarLanderContinuous-v3: land a rocket with two legs between two flags, as
// Gymnasium 1.4's box2d/lunar_lander.py. Box2D's version differs (2.4 here, 2.3 there), so episodes
// agree in distribution, not number by number. Exhaust particles, which touch nothing that counts,
// are left out, as the original does unless it draws.
#include <array>
#include <box2d/box2d.h>
#include <cmath>
#include <memory>
#include <numbers>
#include <optional>
#include <utility>

#include "environments/box2d/box2d_environment.h"
#include "environments/box2d/draw_body.h"
#include "environments/box2d/fast_joint.h"
#include "environments/box2d/ground_contacts.h"
#include "environments/box2d/lunar_lander_rules.h"
#include "environments/box2d/world.h"
#include "environments/drawing/canvas.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

using lunar_lander::Engines;

constexpr double kScale = 30;  // pixels per metre: lengths are given in pixels
constexpr double kPixel = 1 / kScale;
constexpr double kWidth = 600 / kScale, kHeight = 400 / kScale;  // m, of the view
constexpr double kPadHeight = kHeight / 4;
constexpr double kMainPower = 13, kSidePower = 0.6;
constexpr double kInitialForce = 1000;  // N, the bound of each component
constexpr double kMainEngineDown = 4 / kScale;
constexpr double kSideEngineAway = 12 / kScale;
// The original rotates a side engine's height with two lengths, 14 along y and 17 along x.
constexpr double kSideEngineHeight = 14 / kScale, kSideEngineHeightX = 17 / kScale;
constexpr double kLegAway = 20 / kScale, kLegDown = 18 / kScale;
constexpr Corner kHull[] = {{-14, 17}, {-17, 0}, {-17, -10},
                            {17, -10}, {17, 0},  {14, 17}};  // pixels
constexpr uint16_t kHullCategory = 0x0010;
constexpr size_t kChunks = 11;  // corners of the terrain
constexpr int64_t kWindStart = 9999;

// Of time steps; not periodic.
double Wind(int64_t step) {
  const auto t = static_cast<double>(step);
  return std::tanh(std::sin(0.02 * t) + std::sin(std::numbers::pi * 0.01 * t));
}

class LunarLander final : public Box2dEnvironment {
 public:
  static constexpr double kStepNanoseconds = 8000;

  struct Arguments : Config {
    Arguments(const char* environment_id, bool real_actions)
        : id(environment_id), continuous(real_actions) {}
    void Fields(FieldVisitor& v) override {
      v.Field("continuous", continuous,
              "two real actions, the throttles of the main and of the side engines, instead of "
              "four discrete ones");
      v.Field("gravity", gravity, "m/s^2, negative", Range::Between(-12, 0));
      v.Field("enable_wind", enable_wind, "wind and turbulence while no leg is down");
      v.Field("wind_power", wind_power, "largest force of the wind, N");
      v.Field("turbulence_power", turbulence_power, "largest torque of the turbulence, Nm");
    }
    void Check() const override {
      if (gravity <= -12 || gravity >= 0)
        throw ConfigProblem("gravity", "between -12 and 0, both excluded");
    }

    const char* id;
    bool continuous;
    double gravity = -10;
    bool enable_wind = false;
    double wind_power = 15, turbulence_power = 1.5;
  };

  explicit LunarLander(const Arguments& arguments)
      : Box2dEnvironment(MakeSpec(arguments), 4),
        continuous_(arguments.continuous),
        gravity_(arguments.gravity),
        windy_(arguments.enable_wind),
        wind_power_(arguments.wind_power),
        turbulence_power_(arguments.turbulence_power),
        simulation_(std::make_unique<Simulation>()) {}

  // In the colours of the original, without its exhaust.
  void Render(Canvas& canvas) const override {
    constexpr Colour kPart{128, 102, 230}, kOutline{77, 77, 128}, kFlag{204, 204, 0};
    canvas.Open(0, kWidth, 0, kHeight, kBlack);
    std::array<Point, kChunks + 2> ground;
    for (size_t i = 0; i < kChunks; ++i) ground[i] = {CornerX(i), terrain_[i]};
    ground[kChunks] = {kWidth, 0};
    ground[kChunks + 1] = {0, 0};
    canvas.Polygon(ground, kWhite);
    for (const b2Body* part : {lander_, legs_[0], legs_[1]}) {
      if (part != nullptr) DrawBody(*part, kPart, kOutline, kPixel, canvas);
    }
    for (const double x : {CornerX(kChunks / 2 - 1), CornerX(kChunks / 2 + 1)}) {
      const double top = kPadHeight + 50 * kPixel;
      canvas.Line({x, kPadHeight}, {x, top}, kPixel, kWhite);
      canvas.Polygon({{x, top}, {x, top - 10 * kPixel}, {x + 25 * kPixel, top - 5 * kPixel}},
                     kFlag);
    }
  }

 protected:
  void Begin(Rng& rng) override {
    simulation_->contacts.Clear();
    b2World& world = simulation_->world.emplace(Vector(0, gravity_));
    world.SetContactListener(&simulation_->contacts);
    MakeMoon(world, rng);
    MakeHull(world);
    const double x = rng.Uniform(-kInitialForce, kInitialForce);
    lander_->ApplyForceToCenter(Vector(x, rng.Uniform(-kInitialForce, kInitialForce)), true);
    if (windy_) {
      for (int64_t* step : {&wind_step_, &torque_step_})
        *step = static_cast<int64_t>(rng.Below(2 * kWindStart)) - kWindStart;
    }
    MakeLeg(world, 0, -1);
    MakeLeg(world, 1, 1);
    Play(std::array<double, 4>{});
  }

  // Throttles of the main and of the side engines, and by how much they miss.
  void Record(ActionRow action, Rng& rng, std::span<double> record) override {
    const Engines engines = continuous_
                                ? lunar_lander::ContinuousEngines(action.real(0), action.real(1))
                                : lunar_lander::DiscreteEngines(action.index());
    record[0] = engines.main;
    record[1] = engines.side;
    record[2] = rng.Uniform(-1, 1);
    record[3] = rng.Uniform(-1, 1);
  }

  Outcome Play(std::span<const double> record) override {
    const Engines engines{record[0], record[1]};
    const GroundContacts& contacts = simulation_->contacts;
    if (windy_ && !contacts.down(0) && !contacts.down(1)) Blow();
    Fire(engines, record[2] / kScale, record[3] / kScale);
    Advance(*simulation_->world);

    const b2Vec2 position = lander_->GetPosition(), velocity = lander_->GetLinearVelocity();
    const std::array<double, 8> state{
        (position.x - kWidth / 2) / (kWidth / 2),
        (position.y - (kPadHeight + kLegDown)) / (kHeight / 2),
        velocity.x * (kWidth / 2) / kStepsPerSecond,
        velocity.y * (kHeight / 2) / kStepsPerSecond,
        lander_->GetAngle(),
        20.0 * lander_->GetAngularVelocity() / kStepsPerSecond,
        contacts.down(0) ? 1.0 : 0.0,
        contacts.down(1) ? 1.0 : 0.0,
    };
    for (size_t i = 0; i < state.size(); ++i) observation_[i] = static_cast<float>(state[i]);
    const double shaping = lunar_lander::Shaping(state);
    const double gain = shaping - std::exchange(shaping_, shaping);
    const lunar_lander::Situation situation{
        .x = state[0], .crashed = contacts.crashed(), .awake = lander_->IsAwake()};
    return {lunar_lander::Reward(gain, engines, situation), situation.terminal()};
  }

 private:
  // The world and what it points to, at a fixed place.
  struct Simulation {
    GroundContacts contacts;
    std::optional<b2World> world;
  };

  static EnvironmentSpec MakeSpec(const Arguments& arguments) {
    constexpr double kTurn = 2 * std::numbers::pi;
    const Space action = arguments.continuous ? Space(Box{.low = {-1, -1}, .high = {1, 1}})
                                              : Space(Discrete{.n = 4});
    return {.id = arguments.id,
            .observation = {{.name = "observation",
                             .shape = {8},
                             .low = {-2.5, -2.5, -10, -10, -kTurn, -10, 0, 0},
                             .high = {2.5, 2.5, 10, 10, kTurn, 10, 1, 1},
                             .nominal = true}},
            .action = action,
            .time_limit = 1000,
            .reward_threshold = 200,
            .appearance = {.width = 600, .height = 400, .frames_per_second = kStepsPerSecond}};
  }

  static constexpr double CornerX(size_t i) {
    return kWidth / (kChunks - 1) * static_cast<double>(i);
  }

  // A floor, and above it a terrain of edges with a level pad in the middle.
  void MakeMoon(b2World& world, Rng& rng) {
    std::array<double, kChunks + 1> height;
    for (double& value : height) value = rng.Uniform(0, kHeight / 2);
    for (size_t i = kChunks / 2 - 2; i <= kChunks / 2 + 2; ++i) height[i] = kPadHeight;
    const b2BodyDef definition;
    b2Body* moon = world.CreateBody(&definition);
    b2EdgeShape edge;
    edge.SetTwoSided(Vector(0, 0), Vector(kWidth, 0));
    moon->CreateFixture(&edge, 0);
    b2FixtureDef fixture;
    fixture.shape = &edge;
    fixture.friction = 0.1f;
    for (size_t i = 0; i < kChunks; ++i)
      terrain_[i] = 0.33 * (height[i == 0 ? kChunks : i - 1] + height[i] + height[i + 1]);
    for (size_t i = 0; i + 1 < kChunks; ++i) {
      edge.SetTwoSided(Vector(CornerX(i), terrain_[i]), Vector(CornerX(i + 1), terrain_[i + 1]));
      moon->CreateFixture(&fixture);
    }
  }

  void MakeHull(b2World& world) {
    lander_ = MakePart(world,
                       {.position = Vector(kWidth / 2, kHeight),
                        .density = 5,
                        .friction = 0.1f,
                        .category = kHullCategory},
                       PolygonOf(kHull, kPixel));
    GroundContacts::NameHull(*lander_);
  }

  // side: -1 for the first leg, which stands to the right.
  void MakeLeg(b2World& world, size_t foot, double side) {
    b2PolygonShape shape;
    shape.SetAsBox(static_cast<float>(2 / kScale), static_cast<float>(8 / kScale));
    b2Body* leg = MakePart(
        world, {.position = Vector(kWidth / 2 - side * kLegAway, kHeight), .angle = side * 0.05},
        shape);
    GroundContacts::NameFoot(*leg, foot);
    legs_[foot] = leg;

    // A motor presses the leg outwards against its limit, as a spring would.
    b2RevoluteJointDef joint;
    joint.bodyA = lander_;
    joint.bodyB = leg;
    joint.localAnchorA = Vector(0, 0);
    joint.localAnchorB = Vector(side * kLegAway, kLegDown);
    joint.referenceAngle = leg->GetAngle();  // as the original's Python module sets it
    joint.enableMotor = true;
    joint.enableLimit = true;
    joint.maxMotorTorque = 40;
    joint.motorSpeed = static_cast<float>(0.3 * side);
    joint.lowerAngle = static_cast<float>(side < 0 ? 0.9 - 0.5 : -0.9);
    joint.upperAngle = static_cast<float>(side < 0 ? 0.9 : -0.9 + 0.5);
    CreateFastJoint(world, joint);
  }

  void Blow() {
    lander_->ApplyForceToCenter(Vector(Wind(wind_step_++) * wind_power_, 0), true);
    lander_->ApplyTorque(static_cast<float>(Wind(torque_step_++) * turbulence_power_), true);
  }

  // miss: by which the engines' places are off, m.
  void Fire(const Engines& engines, double miss_0, double miss_1) {
    const double angle = lander_->GetAngle();
    const std::array tip{std::sin(angle), std::cos(angle)}, side{-tip[1], tip[0]};
    const b2Vec2 position = lander_->GetPosition();
    const auto push = [&](double x, double y, double power, double place_x, double place_y) {
      lander_->ApplyLinearImpulse(Vector(-x * power, -y * power), Vector(place_x, place_y), true);
    };
    if (engines.main > 0) {
      const double away = kMainEngineDown + 2 * miss_0;
      const double x = tip[0] * away + side[0] * miss_1, y = -tip[1] * away - side[1] * miss_1;
      push(x, y, kMainPower * engines.main, position.x + x, position.y + y);
    }
    if (engines.side != 0) {
      const double direction = engines.side > 0 ? 1 : -1;
      const double away = 3 * miss_1 + direction * kSideEngineAway;
      const double x = tip[0] * miss_0 + side[0] * away, y = -tip[1] * miss_0 - side[1] * away;
      push(x, y, kSidePower * std::abs(engines.side), position.x + x - tip[0] * kSideEngineHeightX,
           position.y + y + tip[1] * kSideEngineHeight);
    }
  }

  const bool continuous_;
  const double gravity_;
  const bool windy_;
  const double wind_power_, turbulence_power_;
  std::unique_ptr<Simulation> simulation_;
  std::array<double, kChunks> terrain_{};  // heights of its corners, m
  // The world's.
  b2Body* lander_ = nullptr;
  std::array<b2Body*, GroundContacts::kFeet> legs_{};
  int64_t wind_step_ = 0, torque_step_ = 0;
  double shaping_ = 0;  // after the last step
};

WEFT_REGISTER_ENVIRONMENT(LunarLander, "LunarLander-v3",
                          "land a rocket between two flags: 8 numbers, 4 actions", "LunarLander-v3",
                          false)
WEFT_REGISTER_ENVIRONMENT(LunarLander, "LunarLanderContinuous-v3",
                          "land a rocket between two flags: 8 numbers, 2 real actions",
                          "LunarLanderContinuous-v3", true)

}  // namespace
}  // namespace weft
