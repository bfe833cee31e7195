// Decorators of a batch: each takes a batch and is one. They change actions on the way in or time
// steps on the way out, and allocate nothing per step (but ObservePixels, whose pictures may). What
// does not fit the environment throws ConfigProblem("environment.wrappers").
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "environments/batch_environment.h"

namespace weft {

// ---- Actions

// Clips every element of a Box action to its bounds; the space stays. For real actions only.
std::unique_ptr<BatchEnvironment> ClipAction(std::unique_ptr<BatchEnvironment> inner);

// Takes actions in [-1, 1] and maps them linearly to the bounds of the Box, which must be finite.
std::unique_ptr<BatchEnvironment> ScaleAction(std::unique_ptr<BatchEnvironment> inner);

// With this probability in [0, 1) a row's last action is carried out again in place of the one
// given (Machado et al. 2018, section 5.2). The first action of an episode is always the one given.
// Rows have random streams of their own, keyed by the options' seed, purpose and first_row; each
// agent is a row. Not for environments with an action mask.
std::unique_ptr<BatchEnvironment> StickyActions(std::unique_ptr<BatchEnvironment> inner,
                                                double probability, const BatchOptions& options);

// ---- Rewards; those of resets and absent agents stay 0

// Clips rewards to [low, high].
std::unique_ptr<BatchEnvironment> ClipReward(std::unique_ptr<BatchEnvironment> inner, double low,
                                             double high);

// scale * reward + shift + gamma * Phi(next observation) - Phi(observation), where Phi(o) is the
// sum of potential[i] * o[i] over the first floating leaf, and 0 after a terminal step. With the
// learner's gamma, Phi changes no optimal policy (Ng et al. 1999). potential: one weight for each
// element, or none for Phi = 0.
struct RewardShaping {
  double scale = 1, shift = 0;
  std::vector<double> potential = {};
  double gamma = 0.99;
};
std::unique_ptr<BatchEnvironment> ShapeReward(std::unique_ptr<BatchEnvironment> inner,
                                              const RewardShaping& shaping);

// Each agent gets the mean or the sum of the rewards of all agents that took part in the step.
std::unique_ptr<BatchEnvironment> ShareReward(std::unique_ptr<BatchEnvironment> inner, bool mean);

// ---- Observations

// Stacks the last `count` observations along the leaf's first dimension, the oldest first: [O]
// becomes [count * O], [C, H, W] becomes [count * C, H, W], [] becomes [count]. The first
// observation of an episode fills the whole stack. A leaf action_mask stays as it is.
std::unique_ptr<BatchEnvironment> FrameStack(std::unique_ptr<BatchEnvironment> inner,
                                             int64_t count);

// Clips the floating leaves to [low, high].
std::unique_ptr<BatchEnvironment> ClipObservation(std::unique_ptr<BatchEnvironment> inner,
                                                  double low, double high);

// Joins the leaves of floats and bytes, in order, into one f32 vector `observation` where the first
// of them stood. Integers, action_mask and state stay leaves of their own.
std::unique_ptr<BatchEnvironment> Flatten(std::unique_ptr<BatchEnvironment> inner);

// Adds a last leaf agent_id [G], 1 for the agent of the row; zeros for absent agents.
std::unique_ptr<BatchEnvironment> AgentId(std::unique_ptr<BatchEnvironment> inner);

// ---- Pictures; pool: changes or draws the rows, null: the calling thread

// Observes how each environment looks (Environment::Render) as a leaf pixels, u8 [3, H, W], in
// place of its other leaves or, to keep them, after these. For environments that draw pictures.
struct PixelOptions {
  int64_t width = 84, height = 84;
  std::string camera;  // as in `weft play`; "": the usual one
  bool keep_state = false;
  ThreadPool* pool = nullptr;
};
std::unique_ptr<BatchEnvironment> ObservePixels(std::unique_ptr<BatchEnvironment> inner,
                                                const PixelOptions& options);

// Pictures are leaves of bytes from 0 to 255 of shape [C, H, W], [H, W, C] with C of 1, 3 or 4, or
// [H, W]. Both write [C, H, W].

// Each three channels red, green, blue become one: 0.2125 R + 0.7154 G + 0.0721 B, cut off, as
// Gymnasium's GrayscaleObservation.
std::unique_ptr<BatchEnvironment> Grayscale(std::unique_ptr<BatchEnvironment> inner,
                                            ThreadPool* pool = nullptr);

// Makes pictures smaller: each new point is the mean of the area that it covers, rounded to the
// nearest. Within 1 of OpenCV's INTER_AREA.
std::unique_ptr<BatchEnvironment> Resize(std::unique_ptr<BatchEnvironment> inner, int64_t width,
                                         int64_t height, ThreadPool* pool = nullptr);

}  // namespace weft
