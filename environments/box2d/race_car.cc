#include "environments/box2d/race_car.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "environments/box2d/fast_joint.h"
#include "environments/box2d/world.h"

namespace weft::car_racing {
namespace {

constexpr Corner kNose[] = {{-60, 130}, {60, 130}, {60, 110}, {-60, 110}};
constexpr Corner kNeck[] = {{-15, 120}, {15, 120}, {20, 20}, {-20, 20}};
constexpr Corner kBody[] = {{25, 20},   {50, -10},  {50, -40},  {20, -90},
                            {-20, -90}, {-50, -40}, {-50, -10}, {-25, 20}};
constexpr Corner kTail[] = {{-50, -120}, {50, -120}, {50, -90}, {-50, -90}};
constexpr Corner kTyre[] = {{-kWheelWidth, kWheelRadius},
                            {kWheelWidth, kWheelRadius},
                            {kWheelWidth, -kWheelRadius},
                            {-kWheelWidth, -kWheelRadius}};
constexpr Corner kPlaces[kWheels] = {{-55, 80}, {55, 80}, {-55, -82}, {55, -82}};

constexpr double kEnginePower = 100000000 * kCarSize * kCarSize;
constexpr double kInertia = 4000 * kCarSize * kCarSize;          // of a wheel
constexpr double kRoadFriction = 1000000 * kCarSize * kCarSize;  // N at most
constexpr double kGrassFriction = 0.6 * kRoadFriction;
constexpr double kStiffness = 205000 * kCarSize * kCarSize;  // N per m/s of slip
constexpr double kBrakeStep = 15;                            // rad/s that a full brake takes off

double Sign(double value) {
  return value > 0 ? 1 : value < 0 ? -1 : 0;
}

void Spin(Wheel& wheel, double seconds) {
  wheel.omega += seconds * kEnginePower * wheel.gas / kInertia / (std::abs(wheel.omega) + 5.0);
  if (wheel.brake >= 0.9) {
    wheel.omega = 0;
  } else if (wheel.brake > 0) {
    const double most = std::abs(wheel.omega);
    wheel.omega -= Sign(wheel.omega) * std::min(kBrakeStep * wheel.brake, most);
  }
  wheel.phase += wheel.omega * seconds;
}

void Push(Wheel& wheel, double seconds) {
  constexpr double kRadius = kWheelRadius * kCarSize;
  const b2Vec2 forward = wheel.body->GetWorldVector({0, 1}),
               right = wheel.body->GetWorldVector({1, 0}),
               velocity = wheel.body->GetLinearVelocity();
  const auto along = [&](const b2Vec2& axis) {
    return double{axis.x} * velocity.x + double{axis.y} * velocity.y;
  };
  double ahead = kStiffness * (-along(forward) + wheel.omega * kRadius);
  double aside = kStiffness * -along(right);
  const double force = std::sqrt(ahead * ahead + aside * aside);
  const double most = wheel.tiles > 0 ? kRoadFriction : kGrassFriction;
  if (force > most) {
    ahead = ahead / force * most;
    aside = aside / force * most;
  }
  wheel.omega -= seconds * ahead * kRadius / kInertia;
  wheel.body->ApplyForceToCenter(
      Vector(aside * right.x + ahead * forward.x, aside * right.y + ahead * forward.y), true);
}

}  // namespace

void Car::Build(b2World& world, double heading, double x, double y) {
  b2BodyDef definition;
  definition.type = b2_dynamicBody;
  definition.position = Vector(x, y);
  definition.angle = static_cast<float>(heading);
  hull = world.CreateBody(&definition);
  for (const std::span<const Corner> corners :
       {std::span<const Corner>(kNose), std::span<const Corner>(kNeck),
        std::span<const Corner>(kBody), std::span<const Corner>(kTail)}) {
    const b2PolygonShape shape = PolygonOf(corners, kCarSize);
    hull->CreateFixture(&shape, 1);
  }
  const b2PolygonShape tyre = PolygonOf(kTyre, kCarSize);
  for (size_t i = 0; i < kWheels; ++i) {
    const double away_x = kPlaces[i].first * kCarSize, away_y = kPlaces[i].second * kCarSize;
    Wheel& wheel = wheels[i] = {};
    // Not turned with the hull: the joints pull the wheels to their places.
    wheel.body = MakePart(
        world, {.position = Vector(x + away_x, y + away_y), .angle = heading, .density = 0.1f},
        tyre);
    b2RevoluteJointDef joint;
    joint.bodyA = hull;
    joint.bodyB = wheel.body;
    joint.localAnchorA = Vector(away_x, away_y);
    joint.enableMotor = true;
    joint.enableLimit = true;
    joint.maxMotorTorque = static_cast<float>(180 * 900 * kCarSize * kCarSize);
    joint.lowerAngle = -0.4f;
    joint.upperAngle = 0.4f;
    wheel.joint = CreateFastJoint(world, joint);
  }
}

void Car::Control(double steer, double gas, double brake) {
  for (size_t i = 0; i < kWheels; ++i) {
    Wheel& wheel = wheels[i];
    if (i < 2) wheel.steer = steer;
    if (i >= 2) wheel.gas += std::min(gas - wheel.gas, 0.1);  // rises slowly
    wheel.brake = brake;
  }
}

void Car::Step(double seconds) {
  for (Wheel& wheel : wheels) {
    const double turn = wheel.steer - wheel.joint->GetJointAngle();
    wheel.joint->SetMotorSpeed(static_cast<float>(Sign(turn) * std::min(50 * std::abs(turn), 3.0)));
    Spin(wheel, seconds);
    Push(wheel, seconds);
  }
}

}  // namespace weft::car_racing
