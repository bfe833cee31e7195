#include "actors/rollout_recorder.h"

#include <cstring>
#include <numeric>
#include <string_view>

namespace weft {

RolloutRecorder::RolloutRecorder(int64_t steps, int64_t rows, int64_t first_row)
    : steps_(steps), rows_(rows), row_id_(Tensor::Empty({1, rows}, DType::kInt64)) {
  const auto ids = row_id_.data<int64_t>();
  std::iota(ids.begin(), ids.end(), first_row);
}

void RolloutRecorder::Record(const TensorMap& step, const TensorMap& chosen) {
  WEFT_CHECK_LT(recorded_, steps_) << "a full rollout must be flushed";
  PutStep(step);
  for (const auto& [name, leaf] : chosen) {
    const bool state = name.text().starts_with("policy_state.");
    if (!state) {
      Put(name, leaf, recorded_, steps_);
    } else if (recorded_ == 0) {
      Put(name, leaf, 0, 1);
    }
  }
  ++recorded_;
}

TensorMap RolloutRecorder::Flush(const TensorMap& step) {
  WEFT_CHECK_EQ(recorded_, steps_) << "a rollout is flushed when it is full";
  PutStep(step);
  rollout_.Set("row_id", row_id_);
  recorded_ = 0;
  return std::exchange(rollout_, {});
}

void RolloutRecorder::PutStep(const TensorMap& step) {
  for (const auto& [name, leaf] : step) {
    const std::string_view text = name.text();
    if (text == "reward" || text == "discount") {
      if (recorded_ > 0) Put(name, leaf, recorded_ - 1, steps_);
    } else {
      Put(name, leaf, recorded_, steps_ + 1);
    }
  }
}

void RolloutRecorder::Put(const TensorName& name, const Tensor& leaf, int64_t t, int64_t length) {
  Tensor* place = nullptr;
  for (auto& [present, tensor] : rollout_) {
    if (present == name) place = &tensor;
  }
  if (place == nullptr) {
    rollout_.Set(name, Tensor::Empty(leaf.shape().Prepend(length), leaf.dtype()));
    place = &rollout_.entry(rollout_.size() - 1).second;
  }
  std::memcpy(place->raw() + t * leaf.bytes(), leaf.raw(), leaf.bytes());
}

TensorMap RolloutRecorder::Save() const {
  TensorMap state;
  state.Merge("rollout", rollout_);
  state.Set("recorded", Tensor::From<int64_t>({1}, {recorded_}));
  return state;
}

void RolloutRecorder::Load(const TensorMap& state) {
  rollout_ = state.Extract("rollout");
  for (auto& [name, tensor] : rollout_) tensor = tensor.Clone();  // recording goes on in place
  recorded_ = state.At("recorded").data<int64_t>()[0];
}

}  // namespace weft
