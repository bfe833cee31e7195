// The part of verification that replays episodes of MiniGrid environments: the whole grid is
// recorded at every step.
#pragma once

#include "base/comparison.h"
#include "environments/environment_row.h"
#include "environments/verify/recording.h"

namespace weft {

inline bool HoldsGrids(const Recording& recording) {
  return recording.Has("grid") && recording.Has("agent");
}

// Open-loop from the recorded first state of each episode: agent, carried object, grid, image and
// ends exactly, rewards within 1e-12. Where layouts.* hold how often the original's resets put each
// object into each cell, and the agent and its direction, as many of ours are compared within six
// standard errors of the difference; one object in every cell of all layouts then is exact. Throws
// Error for an environment of another form.
void VerifyGrids(const Recording& recording, EnvironmentRow& row, Comparison& comparison);

}  // namespace weft
