// The part of verification that compares rollouts of dm_control's suite, and its indicator function
// of rewards.
#pragma once

#include "environments/comparison.h"
#include "environments/environment_row.h"
#include "environments/recording.h"

namespace weft {

inline bool HoldsSuiteRollouts(const Recording& recording) {
  return recording.Has("start.integration_state") && recording.Has("rollout.step_type");
}
inline bool HoldsTolerances(const Recording& recording) {
  return !recording.Metadata("sigmoids").empty();
}

// Compares the observation's leaves with those in the metadata, and every rollout open-loop from
// its recorded first state: observations, positions, velocities, activations, rewards, discounts
// and step types, within 1e-9 and 1e4 times the recorded sensitivity.
void VerifySuiteRollouts(Recording& recording, EnvironmentRow& row, Comparison& comparison);

// Compares Tolerance with recorded values within 1e-12.
void VerifyTolerances(const Recording& recording, Comparison& comparison);

}  // namespace weft
