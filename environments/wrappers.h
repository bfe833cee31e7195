// Decorators of a batch: each takes a batch and is one. They change actions on the way in or time
// steps on the way out, and allocate nothing per step.
#pragma once

#include <cstdint>
#include <memory>

#include "environments/batch_environment.h"

namespace weft {

// Clips every element of a Box action to its bounds; the space stays. Throws
// ConfigProblem("environment.wrappers") for other spaces.
std::unique_ptr<BatchEnvironment> ClipAction(std::unique_ptr<BatchEnvironment> inner);

// Takes actions in [-1, 1] and maps them linearly to the bounds of the Box, which must be finite,
// or it throws ConfigProblem("environment.wrappers").
std::unique_ptr<BatchEnvironment> ScaleAction(std::unique_ptr<BatchEnvironment> inner);

// Clips rewards to [low, high].
std::unique_ptr<BatchEnvironment> ClipReward(std::unique_ptr<BatchEnvironment> inner, double low,
                                             double high);

// Stacks the last `count` observations along the leaf's first dimension, the oldest first: [O]
// becomes [count * O], [C, H, W] becomes [count * C, H, W], [] becomes [count]. The first
// observation of an episode fills the whole stack. A leaf action_mask stays as it is.
std::unique_ptr<BatchEnvironment> FrameStack(std::unique_ptr<BatchEnvironment> inner,
                                             int64_t count);

}  // namespace weft
