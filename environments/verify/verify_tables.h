// The part of verification that compares transition tables: of finite environments every outcome of
// every state and action is recorded.
#pragma once

#include "base/comparison.h"
#include "environments/environment_row.h"
#include "environments/verify/recording.h"

namespace weft {

inline bool HoldsTables(const Recording& recording) {
  return recording.Has("prob") && recording.Has("next");
}

// Compares probabilities, next states, rewards and ends exactly; recorded optimal values with the
// Bellman equation over these outcomes; 200 drawn steps of every state and action, and 20,000 drawn
// starts, with their probabilities within six standard errors. The action mask is compared when the
// environment has that leaf. Throws Error for an environment that is no TabularEnvironment or has
// another number of states or actions.
void VerifyTables(const Recording& recording, EnvironmentRow& row, Comparison& comparison);

}  // namespace weft
