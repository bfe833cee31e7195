// The part of verification that replays episodes of the multi-agent particle environments, and
// compares the random policy's returns in all of them.
#pragma once

#include "base/comparison.h"
#include "environments/multi_agent_row.h"
#include "environments/verify/recording.h"

namespace weft {

inline bool HoldsParticles(const Recording& recording) {
  return recording.Has("start.agent_pos");
}

// What the file of returns calls its environment.
inline constexpr char kParticleReturns[] = "MPE";
inline bool HoldsParticleReturns(const Recording& recording) {
  return recording.Metadata("env") == kParticleReturns;
}

// Open-loop from the recorded first state of each episode: positions, velocities, messages and
// rewards within 1e-10, observations within a unit in the last place and 1e-6, ends exactly. Throws
// Error for an environment of other agents.
void VerifyParticles(const Recording& recording, MultiAgentRow& row, Comparison& comparison);

// Compares the mean return of each agent in as many episodes as were recorded within four standard
// errors of the difference. Throws Error for a scenario that is not registered.
void VerifyParticleReturns(const Recording& recording, Comparison& comparison);

}  // namespace weft
