// The car of CarRacing-v3, seen from above: a hull on four wheels with slip, as Gymnasium 1.4's
// box2d/car_dynamics.py, in its order of operations.
#pragma once

#include <array>
#include <box2d/box2d.h>
#include <cstddef>
#include <cstdint>

namespace weft::car_racing {

inline constexpr double kCarSize = 0.02;                      // m per unit of the shapes
inline constexpr double kWheelRadius = 27, kWheelWidth = 14;  // units; the latter is half of it
inline constexpr size_t kWheels = 4;                          // the front ones first

struct Wheel {
  b2Body* body = nullptr;
  b2RevoluteJoint* joint = nullptr;
  double gas = 0, brake = 0, steer = 0;
  double phase = 0, omega = 0;  // rad, rad/s
  int64_t tiles = 0;            // of road that it stands on
};

struct Car {
  // Puts it into the world.
  void Build(b2World& world, double heading, double x, double y);
  // Steering wheel and pedals: in [-1, 1], positive to the left; in [0, 1]; in [0, 1].
  void Control(double steer, double gas, double brake);
  // Turns the wheels and pushes the car; comes before the step of the world.
  void Step(double seconds);

  b2Body* hull = nullptr;
  std::array<Wheel, kWheels> wheels;
};

}  // namespace weft::car_racing
