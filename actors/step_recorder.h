// Records steps for replay: each is the action that was taken and the time step it led to, [T, N,
// ..], in the form that replay/trajectory_writer.h takes. No observation is in two pieces; the very
// first piece has one step more, the reset.
#pragma once

#include "actors/recorder.h"

namespace weft {

class StepRecorder final : public Recorder {
 public:
  explicit StepRecorder(int64_t steps) : steps_(steps) {}

  void Record(const TensorMap& step, const TensorMap& chosen) override;
  TensorMap Flush(const TensorMap& step) override;
  TensorMap Save() const override;
  void Load(const TensorMap& state) override;

 private:
  void Append(const TensorMap& step);

  const int64_t steps_;
  TensorMap piece_;   // leaves [capacity, N, ..]
  TensorMap chosen_;  // on the newest appended step; empty before the first one
  int64_t capacity_ = 0, length_ = 0;
  bool appended_ = false;  // the step that comes next is in a piece already
};

}  // namespace weft
