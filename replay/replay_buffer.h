// A table of rows: memory, a sampler (which row is drawn), a remover (which row makes room), a rate
// limiter, and a limit on how often a row is drawn. Uniform replay, prioritised replay and a queue
// are settings of it. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "replay/frame_store.h"
#include "replay/rate_limiter.h"
#include "replay/row_layout.h"
#include "replay/row_store.h"
#include "replay/selector.h"
#include "tensor/tensor_map.h"

namespace weft {

struct ReplayOptions {
  std::vector<LeafSpec> leaves;  // of a row, as inserted and sampled
  // Leaves that rows share (observations). Rows are then inserted with the leaves "frame" and
  // "next_frame", i64, numbers of frames in frames(), and sampled with X and next_X for each leaf X
  // of this list instead. Needs a FIFO remover and no limit on draws.
  std::vector<LeafSpec> frames;
  int64_t capacity = 0;  // rows
  SelectorKind sampler = SelectorKind::kUniform;
  SelectorKind remover = SelectorKind::kFifo;  // or uniform; FIFO without a limit: a plain ring
  int64_t max_times_sampled = 0;               // a row leaves after so many draws; 0: no limit
  RateLimit limit;
  PriorityOptions priority;  // of a prioritised sampler
  Rng rng;                   // of a remover that draws
};

// Bytes that a full table takes; nothing is allocated. Shared frames are counted as one per row:
// every episode needs one more, so episodes of one step would double that part.
int64_t ReplayBytes(const ReplayOptions& options);

class ReplayBuffer {
 public:
  // Throws kInvalidArgument on settings that cannot work.
  explicit ReplayBuffer(ReplayOptions options);

  // Stores rows, each leaf [n, ..]. errors f32 [n] (undefined: the largest so far) are what a
  // prioritised sampler turns into priorities. False, and nothing done, when the rate limiter says
  // "not now".
  bool Insert(const TensorMap& rows, const Tensor& errors = {});

  // Draws `batch` rows with replacement into `out`: the leaves [B, ..], and
  //   index  i64 [B]  slot of the row
  //   key    i64 [B]  number of the row since the table began, by which an overwritten slot is
  //                   known; -1 when this draw was the row's last
  //   weight f32 [B]  (size * probability)^-beta over its largest in the batch; 1 when the sampler
  //                   is not prioritised
  // Tensors of `out` that fit and that nobody else holds are written in place. False, and nothing
  // done, when there are too few rows or the rate limiter says "not now".
  bool Sample(int64_t batch, double beta, Rng& rng, TensorMap& out);

  // New errors of rows that were sampled, each argument [B]. Rows that were overwritten or removed
  // since are skipped; returns how many were not. A NaN or infinite error throws kDiverged naming
  // it, before anything is changed.
  int64_t UpdatePriorities(const Tensor& index, const Tensor& key, const Tensor& errors);

  int64_t size() const { return sampler_->size(); }
  int64_t capacity() const { return options_.capacity; }
  int64_t inserted() const { return limiter_.inserted(); }  // rows, over the table's life
  int64_t sampled() const { return limiter_.sampled(); }
  FrameStore& frames() { return *frames_; }  // only when ReplayOptions::frames is not empty

  // The exact state. Rows are handed over as handles of the table's own memory (row_store.h), so
  // nothing is doubled unless the table is written while the state lives.
  TensorMap Save() const;
  void Load(const TensorMap& state);

 private:
  int64_t TakeSlot();
  void Free(int64_t slot);
  void ReleaseFrames(int64_t slot);
  void Draw(Rng& rng);
  void FillWeights(double beta, std::span<float> weights) const;
  int64_t KeyOf(int64_t slot) const;

  ReplayOptions options_;
  RowLayout inserted_;                           // what a row is inserted with
  RowLayout sampled_;                            // the part of it that a batch gets: a prefix
  RowLayout drawn_;                              // index, key, weight
  RowLayout observation_, next_;                 // shared frames under their two names
  RowStore rows_;                                // records of inserted_, then the key
  std::unique_ptr<FrameStore> frames_;           // null when rows hold everything themselves
  std::unique_ptr<Selector> sampler_, remover_;  // no remover: a ring
  RateLimiter limiter_;
  int64_t cursor_ = 0;          // ring: the next slot; else the first slot that was never used
  std::vector<int64_t> free_;   // slots of removed rows
  std::vector<int64_t> times_;  // draws of each slot, when they are limited
  int64_t draws_left_ = 0;      // of all rows together, when they are limited

  // Scratch of Insert and Sample.
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> sampled_columns_, drawn_columns_, observation_columns_, next_columns_;
  std::vector<int64_t> slots_;  // of the batch
  std::vector<double> probability_;
};

}  // namespace weft
