// From a stream of steps to n-step transitions (Sutton 1988; Watkins 1989, n-step returns). T
// ticks, N environment rows.
//
// A step is the action that was taken and the time step it led to, in dm_env semantics:
//   step k of a row = {action a, observation o', reward r, discount d, type}, o --a--> (o', r, d)
// A kFirst step begins an episode: its action, reward and discount mean nothing, and no transition
// leads to it (that is the autoreset step after kLast). So each step that is not kFirst makes
// exactly one transition, and a chunk of T ticks needs no observation twice. A kLast outside an
// episode is no step: the row belongs to an agent that is not there while others are.
//
// The transition that starts with action a in observation o is
//   {o, a, reward = r_1 + gamma d_1 (r_2 + gamma d_2 (... r_m)),
//    discount = gamma d_1 gamma d_2 ... gamma d_m, o_m}
// with m = n, or fewer when the episode ends first: the n - 1 transitions at its end are written
// too. o_m is the observation of the step reached, the true final one at an end; discount is 0
// after a termination and gamma^m after a truncation. An episode that is cut off without kLast (a
// restarted actor) is closed as truncated where it was seen last.
#pragma once

#include <cstdint>
#include <vector>

#include "replay/frame_store.h"
#include "replay/row_layout.h"
#include "tensor/tensor_map.h"

namespace weft {

struct TrajectoryOptions {
  std::vector<LeafSpec> observation;  // leaves of the observation
  std::vector<LeafSpec> carried;      // go with the action, copied: action, row_id, episode_id, ...
  int64_t rows = 1;                   // N
  int64_t n_step = 1;
  double gamma = 0.99;
};

// Leaves of a transition: the observation, the carried ones, "reward" and "discount" f32, "next_" +
// each leaf of the observation. With shared frames less the observations: the table adds them
// (ReplayOptions::frames).
std::vector<LeafSpec> TransitionLeaves(const TrajectoryOptions& options, bool shared_frames);

class TrajectoryWriter {
 public:
  // frames: where observations are put once, and transitions hold "frame" and "next_frame"; null:
  // they hold copies.
  explicit TrajectoryWriter(TrajectoryOptions options, FrameStore* frames = nullptr);
  TrajectoryWriter(const TrajectoryWriter&) = delete;
  TrajectoryWriter& operator=(const TrajectoryWriter&) = delete;

  // steps: observation and carried leaves [T, N, ..], reward f32, discount f32, type u8 [T, N].
  // Returns the transitions that these steps completed, [M, ..], in the order (row, step); M may be
  // 0. The memory is used again once all handles of the last result are gone. Throws kDiverged
  // naming row and tick of a reward or discount that is not finite, and kInvalidArgument for a
  // kMid after kLast.
  TensorMap Append(const TensorMap& steps);

  // Steps seen that are not kFirst, of agents that were there.
  int64_t steps() const { return steps_; }

  // Open episodes and pending transitions, exactly.
  TensorMap Save() const;
  void Load(const TensorMap& state);

 private:
  struct Chunk;   // the columns of one call
  struct Output;  // the transitions of one call

  void Step(const Chunk& chunk, int64_t row, int64_t tick, Output& output);
  void EmitOldest(int64_t row, Output& output);
  // The observation that row holds now is replaced by that of the step.
  void SetCurrent(int64_t row, int64_t element);

  std::byte* Current(int64_t row) {
    return current_.raw() + static_cast<size_t>(row) * held_.bytes();
  }
  std::byte* Entry(int64_t row, int64_t index);

  TrajectoryOptions options_;
  FrameStore* frames_;
  RowLayout observation_;  // leaves of a step
  RowLayout held_;         // what is kept of an observation: its leaves or the number of its frame
  RowLayout carried_, scalars_, transition_;
  int64_t steps_ = 0;

  // Per row: the newest observation, and a ring of the last actions that wait for more steps. All
  // waiting actions are of one episode and consecutive, so the oldest of c of them has seen c
  // steps.
  Tensor current_;                 // u8 [N, bytes of held_]
  Tensor status_;                  // u8 [N], Status
  Tensor window_;                  // u8 [N, n, bytes of held_ and carried_]
  Tensor sums_;                    // f64 [N, n, 2], reward and discount so far
  Tensor ring_;                    // i64 [N, 2], place of the oldest and how many
  std::vector<int64_t> unneeded_;  // frames to release once the last result is stored

  TensorMap buffers_;  // memory of the result
  std::vector<const std::byte*> observation_columns_, carried_columns_, scalar_columns_;
  std::vector<std::byte*> output_columns_;
};

}  // namespace weft
