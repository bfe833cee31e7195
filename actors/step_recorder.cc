#include "actors/step_recorder.h"

#include <cstring>

namespace weft {

void StepRecorder::Record(const TensorMap& step, const TensorMap& chosen) {
  if (chosen_.empty()) {  // nothing led to the very first step: actions of zeros stand in its place
    for (const auto& [name, leaf] : chosen)
      chosen_.Set(name, Tensor::Zeros(leaf.shape(), leaf.dtype()));
  }
  if (!appended_) Append(step);
  appended_ = false;
  chosen_ = chosen;
}

TensorMap StepRecorder::Flush(const TensorMap& step) {
  Append(step);
  appended_ = true;
  TensorMap piece;
  for (auto& [name, leaf] : piece_) piece.Set(name, leaf.Slice(0, length_));
  piece_.Clear();
  length_ = 0;
  return piece;
}

void StepRecorder::Append(const TensorMap& step) {
  if (piece_.empty()) {
    capacity_ = steps_ + 1;
    for (const auto* leaves : {&step, &std::as_const(chosen_)}) {
      for (const auto& [name, leaf] : *leaves) {
        piece_.Set(name, Tensor::Empty(leaf.shape().Prepend(capacity_), leaf.dtype()));
      }
    }
  }
  WEFT_CHECK_LT(length_, capacity_) << "a full piece must be flushed";
  size_t place = 0;  // both maps keep their order from step to step
  for (const auto* leaves : {&step, &std::as_const(chosen_)}) {
    for (const auto& [name, leaf] : *leaves) {
      Tensor& target = piece_.entry(place++).second;
      std::memcpy(target.raw() + static_cast<size_t>(length_) * leaf.bytes(), leaf.raw(),
                  leaf.bytes());
    }
  }
  ++length_;
}

TensorMap StepRecorder::Save() const {
  TensorMap state;
  state.Merge("piece", piece_);
  state.Merge("chosen", chosen_);
  state.Set("progress", Tensor::From<int64_t>({3}, {capacity_, length_, int64_t{appended_}}));
  return state;
}

void StepRecorder::Load(const TensorMap& state) {
  piece_ = state.Extract("piece");
  for (auto& [name, leaf] : piece_) leaf = leaf.Clone();  // recording goes on in place
  chosen_ = state.Extract("chosen");
  const auto progress = state.At("progress").data<int64_t>();
  capacity_ = progress[0];
  length_ = progress[1];
  appended_ = progress[2] != 0;
}

}  // namespace weft
