// A soft indicator of an interval, of which the rewards of dm_control's suite are made
// (dm_control/utils/rewards.py, dm_control 1.0.50; Tassa et al. 2018, section 3.1).
#pragma once

namespace weft {

enum class Sigmoid {
  kGaussian,
  kHyperbolic,
  kLongTail,
  kReciprocal,
  kCosine,
  kLinear,
  kQuadratic,
  kTanhSquared
};

// How the indicator falls off outside the interval: to value_at_margin at the distance `margin`
// from it; at once where the margin is 0.
struct Margin {
  double margin = 0;
  Sigmoid sigmoid = Sigmoid::kGaussian;
  double value_at_margin = 0.1;
};

// In [0, 1]: 1 for x in [low, high], each of which may be infinite.
double Tolerance(double x, double low, double high, const Margin& margin = {});

}  // namespace weft
