// The part of verification that compares environments on Box2D, whose versions agree in
// distribution only.
#pragma once

#include "base/comparison.h"
#include "environments/environment_row.h"
#include "environments/verify/recording.h"

namespace weft {

inline bool HoldsShapedTraces(const Recording& recording) {
  return recording.Has("trace.shaping") && recording.Has("trace.game_over");
}

// Compares
// - observation bounds and the time limit with those in the metadata;
// - shaping, rewards and ends of the recorded steps, computed by the environment's own rules from
//   what was recorded of them: shaping within 1e-4, as observations are f32, rewards within 1e-6
//   with real actions and exactly with discrete ones;
// - returns and ends of as many episodes as were recorded, of the random policy and of the
//   original's heuristic, lengths with the random policy, and first observations: means within four
//   standard errors of their difference, and by the two-sample Kolmogorov-Smirnov test at p =
//   0.001;
// - the heuristic's actions in recorded observations.
// Throws Error for an environment of another form.
void VerifyShapedTraces(Recording& recording, EnvironmentRow& row, Comparison& comparison);

}  // namespace weft
