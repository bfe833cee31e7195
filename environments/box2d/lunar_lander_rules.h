// The arithmetic of LunarLander-v3 around the physics: engines, shaping and reward of Gymnasium
// 1.4's box2d/lunar_lander.py, operation by operation. It needs no Box2D, so that verification can
// give it recorded numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

namespace weft::lunar_lander {

// Throttle of the main engine in 0 or [0.5, 1]; of the side engines likewise, negative for the left
// one.
struct Engines {
  double main = 0, side = 0;
};

// 0 nothing, 1 left engine, 2 main engine, 3 right engine.
inline Engines DiscreteEngines(int64_t action) {
  return {.main = action == 2 ? 1.0 : 0.0, .side = action == 1 ? -1.0 : action == 3 ? 1.0 : 0.0};
}

inline Engines ContinuousEngines(double main, double side) {
  Engines engines;
  if (main > 0) engines.main = (std::clamp(main, 0.0, 1.0) + 1) * 0.5;
  if (std::abs(side) > 0.5) engines.side = std::clamp(side, -1.0, 1.0);
  return engines;
}

// state: the observation before it is rounded to f32.
inline double Shaping(std::span<const double, 8> state) {
  return -100 * std::sqrt(state[0] * state[0] + state[1] * state[1]) -
         100 * std::sqrt(state[2] * state[2] + state[3] * state[3]) - 100 * std::abs(state[4]) +
         10 * state[6] + 10 * state[7];
}

// What a step ended with, besides its shaping.
struct Situation {
  double x = 0;  // first number of the state
  bool crashed = false, awake = true;

  bool lost() const { return crashed || std::abs(x) >= 1; }
  bool terminal() const { return lost() || !awake; }
};

// gain: of the shaping over the step.
inline double Reward(double gain, const Engines& engines, const Situation& situation) {
  if (!situation.awake) return 100;
  if (situation.lost()) return -100;
  return gain - engines.main * 0.30 - std::abs(engines.side) * 0.03;
}

}  // namespace weft::lunar_lander
