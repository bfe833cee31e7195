// The part of verification that compares rollouts of dm_control's suite, and its indicator function
// of rewards.
#pragma once

#include "base/comparison.h"
#include "environments/environment_row.h"
#include "environments/verify/recording.h"

namespace weft {

inline bool HoldsSuiteRollouts(const Recording& recording) {
  return recording.Has("start.integration_state") && recording.Has("rollout.step_type");
}
inline bool HoldsTolerances(const Recording& recording) {
  return !recording.Metadata("sigmoids").empty();
}

// What a file of the random policy's returns in many tasks calls its environment.
inline constexpr char kSuiteReturns[] = "dm_control BENCHMARKING";
inline bool HoldsSuiteReturns(const Recording& recording) {
  return recording.Metadata("env") == kSuiteReturns;
}

// Compares the observation's leaves with those in the metadata, and every rollout open-loop from
// its recorded first state: observations, positions, velocities, activations, rewards, discounts
// and step types, within 1e-9 and 1e4 times the recorded sensitivity.
void VerifySuiteRollouts(Recording& recording, EnvironmentRow& row, Comparison& comparison);

// Compares the mean return of the random policy in every task of the file, within four standard
// errors. Throws Error for a task that is not registered.
void VerifySuiteReturns(const Recording& recording, Comparison& comparison);

// Compares Tolerance with recorded values within 1e-12.
void VerifyTolerances(const Recording& recording, Comparison& comparison);

}  // namespace weft
