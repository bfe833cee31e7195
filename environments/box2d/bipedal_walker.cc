// BipedalWalker-v3 and BipedalWalkerHardcore-v3: walk on two legs with four motors over rough
// ground seen by a lidar, as Gymnasium 1.4's box2d/bipedal_walker.py. Box2D's version differs (2.4
// here, 2.3 there), so episodes agree in distribution, not number by number. Clouds are left out.
#include <algorithm>
#include <array>
#include <box2d/box2d.h>
#include <cmath>
#include <memory>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include "environments/box2d/bipedal_terrain.h"
#include "environments/box2d/bipedal_walker_rules.h"
#include "environments/box2d/box2d_environment.h"
#include "environments/box2d/draw_body.h"
#include "environments/box2d/fast_joint.h"
#include "environments/box2d/ground_contacts.h"
#include "environments/box2d/world.h"
#include "environments/drawing/canvas.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

using bipedal_walker::kScale;

constexpr double kHipSpeed = 4, kKneeSpeed = 6;  // rad/s at most
constexpr double kLidarRange = 160 / kScale;
constexpr size_t kRays = 10;
constexpr double kInitialForce = 5;                                           // N, the bound
constexpr Corner kHull[] = {{-30, 9}, {6, 9}, {34, 1}, {34, -8}, {-30, -8}};  // pixels
constexpr double kLegDown = -8 / kScale;  // of the hips below the hull's centre
constexpr double kLegWidth = 8 / kScale, kLegHeight = 34 / kScale;
constexpr double kWidth = 600 / kScale, kHeight = 400 / kScale;  // m, of the view
constexpr double kGroundFriction = 2.5;
constexpr double kPixel = 1 / kScale;

// How far along a ray the nearest ground is, as a share of its length; 1 when there is none.
class Ray final : public b2RayCastCallback {
 public:
  float ReportFixture(b2Fixture* fixture, const b2Vec2&, const b2Vec2&, float share) override {
    if ((fixture->GetFilterData().categoryBits & kGroundCategory) == 0) return -1;
    nearest_ = share;
    return share;
  }
  float nearest() const { return nearest_; }

 private:
  float nearest_ = 1;
};

class BipedalWalker final : public Box2dEnvironment {
 public:
  static constexpr double kStepNanoseconds = 25000;

  struct Arguments : Config {
    Arguments(const char* environment_id, bool obstacles, int64_t steps)
        : id(environment_id), time_limit(steps), hardcore(obstacles) {}
    void Fields(FieldVisitor& v) override {
      v.Field("hardcore", hardcore, "with stumps, stairs and pits");
    }

    const char* id;
    int64_t time_limit;
    bool hardcore;
  };

  explicit BipedalWalker(const Arguments& arguments)
      : Box2dEnvironment(MakeSpec(arguments), kJoints),
        hardcore_(arguments.hardcore),
        simulation_(std::make_unique<Simulation>()) {}

  // In the colours of the original, which follows the hull and shows one ray of the lidar in turn,
  // all of them here.
  void Render(Canvas& canvas) const override {
    const b2Body* hull = bodies_[0];
    const b2Vec2 eye = hull == nullptr ? b2Vec2(0, 0) : hull->GetPosition();
    const double left = eye.x - kWidth / 5;
    canvas.Open(left, left + kWidth, 0, kHeight, {215, 215, 255});
    DrawGround(left, canvas);
    if (hull == nullptr) return;
    for (size_t i = 0; i < kRays; ++i) {
      const b2Vec2 end = RayEnd(eye, i);
      const double share = observation_[observation_.size() - kRays + i];
      canvas.Line({eye.x, eye.y},
                  {eye.x + share * (end.x - eye.x), eye.y + share * (end.y - eye.y)}, kPixel,
                  {255, 0, 0, 0.4});
    }
    for (size_t part = 1; part < bodies_.size(); ++part) {
      const auto shade = [&](int value) {
        return static_cast<uint8_t>(part < 3 ? value + 25 : value - 25);
      };
      DrawBody(*bodies_[part], {shade(153), shade(76), shade(127)},
               {shade(102), shade(51), shade(76)}, kPixel, canvas);
    }
    DrawBody(*hull, {127, 51, 229}, {76, 76, 127}, kPixel, canvas);
    const double x = bipedal_walker::kTerrainStep * 3, bottom = bipedal_walker::kTerrainHeight,
                 top = bottom + 50 * kPixel;
    canvas.Line({x, bottom}, {x, top}, kPixel, kBlack);
    canvas.Polygon({{x, top}, {x, top - 10 * kPixel}, {x + 25 * kPixel, top - 5 * kPixel}},
                   {230, 51, 0});
  }

 protected:
  void Begin(Rng& rng) override {
    simulation_->contacts.Clear();
    b2World& world = simulation_->world.emplace(b2Vec2(0, -10));
    world.SetContactListener(&simulation_->contacts);
    bipedal_walker::DrawTerrain(hardcore_, rng, simulation_->terrain);
    MakeGround(world);
    MakeHull(world);
    bodies_[0]->ApplyForceToCenter(Vector(rng.Uniform(-kInitialForce, kInitialForce), 0), true);
    MakeLeg(world, 0, -1);
    MakeLeg(world, 1, 1);
    Play(std::array<double, kJoints>{});
  }

  // Torques of hip and knee of the first leg, then of the second, as shares of the largest.
  void Record(ActionRow action, Rng&, std::span<double> record) override {
    for (size_t i = 0; i < kJoints; ++i)
      record[i] = std::clamp(action.real(static_cast<int64_t>(i)), -1.0, 1.0);
  }

  Outcome Play(std::span<const double> record) override {
    for (size_t i = 0; i < kJoints; ++i) {
      const double direction = record[i] > 0 ? 1 : record[i] < 0 ? -1 : 0;
      joints_[i]->SetMotorSpeed(static_cast<float>(Speed(i) * direction));
      joints_[i]->SetMaxMotorTorque(
          static_cast<float>(bipedal_walker::kMotorTorque * std::abs(record[i])));
    }
    // In Box2D 2.3 setting a motor wakes its bodies, in 2.4 changing it.
    for (b2Body* body : bodies_) body->SetAwake(true);
    Advance(*simulation_->world);
    Look();
    const double x = bodies_[0]->GetPosition().x;
    const double shaping = bipedal_walker::Shaping(x, bodies_[0]->GetAngle());
    const double gain = shaping - std::exchange(shaping_, shaping);
    const bipedal_walker::Situation situation{.x = x, .crashed = simulation_->contacts.crashed()};
    return {bipedal_walker::Reward(gain, record, situation), situation.terminal()};
  }

 private:
  static constexpr size_t kJoints = 4;

  // The world and what it points to, at a fixed place.
  struct Simulation {
    GroundContacts contacts;
    std::optional<b2World> world;
    bipedal_walker::Terrain terrain;
  };

  static double Speed(size_t joint) { return joint % 2 == 0 ? kHipSpeed : kKneeSpeed; }

  static EnvironmentSpec MakeSpec(const Arguments& arguments) {
    constexpr double kPi = std::numbers::pi;
    std::vector<double> low{-kPi, -5, -5, -5}, high{kPi, 5, 5, 5};
    for (size_t leg = 0; leg < GroundContacts::kFeet; ++leg) {
      low.insert(low.end(), {-kPi, -5, -kPi, -5, 0});
      high.insert(high.end(), {kPi, 5, kPi, 5, 5});
    }
    low.insert(low.end(), kRays, -1);
    high.insert(high.end(), kRays, 1);
    return {.id = arguments.id,
            .observation =
                {{.name = "observation", .shape = {24}, .low = low, .high = high, .nominal = true}},
            .action = Box{.low = {-1, -1, -1, -1}, .high = {1, 1, 1, 1}},
            .time_limit = arguments.time_limit,
            .reward_threshold = 300,
            .appearance = {.width = 600, .height = 400, .frames_per_second = kStepsPerSecond}};
  }

  // The original makes a body of every edge and obstacle; those of one body collide no differently.
  void MakeGround(b2World& world) {
    const b2BodyDef definition;
    b2Body* ground = world.CreateBody(&definition);
    b2FixtureDef fixture;
    fixture.friction = static_cast<float>(kGroundFriction);
    b2PolygonShape polygon;
    fixture.shape = &polygon;
    for (const auto& obstacle : simulation_->terrain.obstacles) {
      std::array<b2Vec2, 4> corners;
      for (size_t i = 0; i < corners.size(); ++i) corners[i] = Vector(obstacle[i].x, obstacle[i].y);
      polygon.Set(corners.data(), static_cast<int32>(corners.size()));
      ground->CreateFixture(&fixture);
    }
    b2EdgeShape edge;
    fixture.shape = &edge;
    const auto& points = simulation_->terrain.ground;
    for (size_t i = 0; i + 1 < points.size(); ++i) {
      edge.SetTwoSided(Vector(points[i].x, points[i].y), Vector(points[i + 1].x, points[i + 1].y));
      ground->CreateFixture(&fixture);
    }
  }

  static constexpr double kStartX =
      bipedal_walker::kTerrainStep * bipedal_walker::kTerrainStart / 2;
  static constexpr double kStartY = bipedal_walker::kTerrainHeight + 2 * kLegHeight;

  void MakeHull(b2World& world) {
    bodies_[0] =
        MakePart(world, {.position = Vector(kStartX, kStartY), .density = 5, .friction = 0.1f},
                 PolygonOf(kHull, kPixel));
    GroundContacts::NameHull(*bodies_[0]);
  }

  // side: -1 for the first leg, 1 for the second, which start tilted to either side.
  void MakeLeg(b2World& world, size_t leg, double side) {
    const auto part = [&](double width, double up) {
      b2PolygonShape shape;
      shape.SetAsBox(static_cast<float>(width / 2), static_cast<float>(kLegHeight / 2));
      return MakePart(world,
                      {.position = Vector(kStartX, kStartY + up - kLegDown), .angle = side * 0.05},
                      shape);
    };
    b2Body* upper = part(kLegWidth, -kLegHeight / 2);
    joints_[2 * leg] = MakeJoint(world, *bodies_[0], *upper, kLegDown, side, -0.8, 1.1);
    b2Body* lower = part(0.8 * kLegWidth, -kLegHeight * 3 / 2);
    joints_[2 * leg + 1] = MakeJoint(world, *upper, *lower, -kLegHeight / 2, 1, -1.6, -0.1);
    GroundContacts::NameFoot(*lower, leg);
    bodies_[2 * leg + 1] = upper;
    bodies_[2 * leg + 2] = lower;
  }

  static b2RevoluteJoint* MakeJoint(b2World& world, b2Body& above, b2Body& below, double down,
                                    double speed, double lower, double upper) {
    b2RevoluteJointDef joint;
    joint.bodyA = &above;
    joint.bodyB = &below;
    joint.localAnchorA = Vector(0, down);
    joint.localAnchorB = Vector(0, kLegHeight / 2);
    // As the original's Python module sets it.
    joint.referenceAngle = below.GetAngle() - above.GetAngle();
    joint.enableMotor = true;
    joint.enableLimit = true;
    joint.maxMotorTorque = static_cast<float>(bipedal_walker::kMotorTorque);
    joint.motorSpeed = static_cast<float>(speed);
    joint.lowerAngle = static_cast<float>(lower);
    joint.upperAngle = static_cast<float>(upper);
    return CreateFastJoint(world, joint);
  }

  // Writes the observation.
  void Look() {
    const b2Body& hull = *bodies_[0];
    const b2Vec2 velocity = hull.GetLinearVelocity();
    float* out = observation_.data();
    const auto write = [&](double value) { *out++ = static_cast<float>(value); };
    write(hull.GetAngle());
    write(2.0 * hull.GetAngularVelocity() / kStepsPerSecond);
    write(0.3 * velocity.x * kWidth / kStepsPerSecond);
    write(0.3 * velocity.y * kHeight / kStepsPerSecond);
    for (size_t leg = 0; leg < GroundContacts::kFeet; ++leg) {
      const b2RevoluteJoint &hip = *joints_[2 * leg], &knee = *joints_[2 * leg + 1];
      write(hip.GetJointAngle());
      write(hip.GetJointSpeed() / kHipSpeed);
      write(knee.GetJointAngle() + 1.0);
      write(knee.GetJointSpeed() / kKneeSpeed);
      write(simulation_->contacts.down(leg) ? 1 : 0);
    }
    const b2Vec2 position = hull.GetPosition();
    for (size_t i = 0; i < kRays; ++i) {
      Ray ray;
      simulation_->world->RayCast(&ray, position, RayEnd(position, i));
      write(ray.nearest());
    }
  }

  // Of the lidar's ray i: the first points straight down, the last nearly ahead.
  static b2Vec2 RayEnd(const b2Vec2& eye, size_t i) {
    const double angle = 1.5 * static_cast<double>(i) / kRays;
    return Vector(eye.x + std::sin(angle) * kLidarRange, eye.y - std::cos(angle) * kLidarRange);
  }

  void DrawGround(double left, Canvas& canvas) const {
    const auto& [ground, obstacles] = simulation_->terrain;
    std::vector<Point> area(ground.begin(), ground.end());
    area.insert(area.end(), {{ground.back().x, 0}, {0, 0}});
    canvas.Polygon(area, {102, 153, 76});
    for (size_t i = 0; i + 1 < ground.size(); ++i) {
      if (ground[i + 1].x < left || ground[i].x > left + kWidth) continue;
      canvas.Line(ground[i], ground[i + 1], kPixel,
                  {76, static_cast<uint8_t>(i % 2 == 0 ? 255 : 204), 76});
    }
    for (const auto& corners : obstacles) {
      canvas.Polygon(corners, kWhite);
      canvas.Polyline(corners, kPixel, {153, 153, 153});
      canvas.Line(corners.back(), corners.front(), kPixel, {153, 153, 153});
    }
  }

  const bool hardcore_;
  std::unique_ptr<Simulation> simulation_;
  // The world's: hull, then upper and lower part of each leg; hip and knee of each leg.
  std::array<b2Body*, kJoints + 1> bodies_{};
  std::array<b2RevoluteJoint*, kJoints> joints_{};
  double shaping_ = 0;  // after the last step
};

WEFT_REGISTER_ENVIRONMENT(BipedalWalker, "BipedalWalker-v3",
                          "walk on two legs over rough ground: 24 numbers, 4 real actions",
                          "BipedalWalker-v3", false, 1600)
WEFT_REGISTER_ENVIRONMENT(BipedalWalker, "BipedalWalkerHardcore-v3",
                          "the same with stumps, stairs and pits: 24 numbers, 4 real actions",
                          "BipedalWalkerHardcore-v3", true, 2000)

}  // namespace
}  // namespace weft
