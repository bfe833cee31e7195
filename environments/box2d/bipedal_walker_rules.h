// The arithmetic of BipedalWalker-v3 around the physics: shaping and reward of Gymnasium 1.4's
// box2d/bipedal_walker.py. It needs no Box2D, so that verification can give it recorded numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace weft::bipedal_walker {

inline constexpr double kScale = 30;  // pixels per metre: lengths are given in pixels
inline constexpr double kTerrainStep = 14 / kScale;
inline constexpr int kTerrainLength = 200, kTerrainGrass = 10;  // in steps
inline constexpr double kMotorTorque = 80;                      // Nm at full action

// x of the hull, m; angle of it, rad.
inline double Shaping(double x, double angle) {
  return 130 * x / kScale - 5.0 * std::abs(angle);
}

// What a step ended with, besides its shaping.
struct Situation {
  double x = 0;  // of the hull, m
  bool crashed = false;

  bool lost() const { return crashed || x < 0; }
  bool terminal() const { return lost() || x > (kTerrainLength - kTerrainGrass) * kTerrainStep; }
};

// gain: of the shaping over the step.
inline double Reward(double gain, std::span<const double> action, const Situation& situation) {
  if (situation.lost()) return -100;
  for (const double torque : action)
    gain -= 0.00035 * kMotorTorque * std::clamp(std::abs(torque), 0.0, 1.0);
  return gain;
}

}  // namespace weft::bipedal_walker
