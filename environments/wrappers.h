// Decorators of a batch: each takes a batch and is one. They change actions on the way in or time
// steps on the way out, and allocate nothing per step (but ObservePixels, whose pictures may).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

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

// Observes how each environment looks (Environment::Render) as a leaf pixels, u8 [3, H, W], in
// place of its other leaves or, to keep them, after these. Throws
// ConfigProblem("environment.wrappers") for environments that draw no pictures.
struct PixelOptions {
  int64_t width = 84, height = 84;
  std::string camera;  // as in `weft play`; "": the usual one
  bool keep_state = false;
  ThreadPool* pool = nullptr;  // draws the rows; null: the calling thread
};
std::unique_ptr<BatchEnvironment> ObservePixels(std::unique_ptr<BatchEnvironment> inner,
                                                const PixelOptions& options);

}  // namespace weft
