// Records T steps of N rows as one rollout, the piece that on-policy learners take. Leaves, all
// with the rows in dimension 1:
//   observation leaves, type, episode_id  [T+1, N, ..]  the last one is the step after the rollout,
//   for bootstrapping reward, discount                      [T, N]        of the transition from
//   step t to t+1 what the agent chose                  [T, N, ..]    action, log_prob, ...
//   policy_state.*                        [1, N, ..]    recurrent state before step 0
//   row_id, version                       [1, N]        global row; version of the parameters acted
//   with
// A transition that leaves a kLast step is the autoreset's and no experience: learners mask it by
// type[t] == kLast.
#pragma once

#include "actors/recorder.h"

namespace weft {

class RolloutRecorder final : public Recorder {
 public:
  RolloutRecorder(int64_t steps, int64_t rows, int64_t first_row);

  void Record(const TensorMap& step, const TensorMap& chosen) override;
  TensorMap Flush(const TensorMap& step) override;
  TensorMap Save() const override;
  void Load(const TensorMap& state) override;

 private:
  // Copies a leaf [N, ..] into time t of the rollout's leaf [length, N, ..].
  void Put(const TensorName& name, const Tensor& leaf, int64_t t, int64_t length);
  void PutStep(const TensorMap& step);

  const int64_t steps_, rows_;
  Tensor row_id_;  // [1, N]
  TensorMap rollout_;
  int64_t recorded_ = 0;
};

}  // namespace weft
