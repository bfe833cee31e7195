// The table as a fragment, in lockstep with actor and learner: data goes in in the order
// (environment row, step), an exact number of batches comes out for it, and the draws of update k
// come from the random stream k. So placement cannot change what is learned.
//
//   insert (input)   steps of all rows since the last message, [T, N, ..], see trajectory_writer.h
//   batch  (output)  for each insert message as many batches as its steps are due, or one message
//                    without a batch
//   update (input)   only when prioritised: one answer to each batch, {index, key: as in the batch,
//                    td_error f32 [B]}
//
// Every message of `batch` carries
//   env_steps  i64 [1]  steps inserted so far, autoreset steps not counted
//   last       u8  [1]  1 on the last message for an insert message
// and a batch carries besides the leaves of transitions [B, ..], and index, key, weight
// (replay_buffer.h). Its version is the number of the update, from 0. The learner publishes
// parameters once after each message with last = 1, whether it brought a batch or not, so an actor
// that waits for the answer to its chunk always gets one.
#pragma once

#include <cstdint>
#include <vector>

#include "base/config.h"
#include "dataflow/fragment.h"
#include "replay/replay_buffer.h"
#include "replay/trajectory_writer.h"

namespace weft {

struct ReplayConfig : Config {
  int64_t capacity = 1'000'000;
  int64_t batch_size = 256;
  int64_t min_size = 100;
  double updates_per_step = 1;
  int64_t n_step = 1;
  bool shared_frames = false;
  bool prioritised = false;
  double alpha = 0.6, beta = 0.4, epsilon = 1e-6;  // Schaul et al. 2016, table 3 and appendix B.2.1

  void Fields(FieldVisitor& visitor) override;
  void Check() const override;
};

struct ReplayFragmentOptions {
  ReplayConfig config;
  std::vector<LeafSpec> observation;  // of the steps
  std::vector<LeafSpec> carried;      // action, row_id, episode_id, version, ...
  int64_t rows = 1;                   // N of the insert messages
  double gamma = 0.99;
  int64_t total_steps = 1;  // environment steps of the run: over them beta rises to 1
  uint64_t seed = 0;
};

// The table that such a fragment keeps, for ReplayBytes.
ReplayOptions TableOptions(const ReplayFragmentOptions& options);

// Whether a message of `batch` brings a batch.
inline bool HasBatch(const Message& message) {
  return message.body.Has("key");
}

// Ports: insert, update -> batch. One replica.
FragmentFactory MakeReplay(const ReplayFragmentOptions& options);

}  // namespace weft
