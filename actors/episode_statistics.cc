#include "actors/episode_statistics.h"

#include <algorithm>

#include "environments/environment.h"

namespace weft {

EpisodeStatistics::EpisodeStatistics(int64_t rows) : returns_(rows, 0.0), lengths_(rows, 0) {}

void EpisodeStatistics::Observe(const TensorMap& step) {
  const auto reward = step.At("reward").data<float>();
  const auto type = step.At("type").data<uint8_t>();
  for (size_t row = 0; row < returns_.size(); ++row) {
    switch (static_cast<StepType>(type[row])) {
      case StepType::kFirst:
        returns_[row] = 0;
        lengths_[row] = 0;
        break;
      case StepType::kMid:
        returns_[row] += reward[row];
        ++lengths_[row];
        break;
      case StepType::kLast:
        ended_.push_back(
            {static_cast<int64_t>(row), returns_[row] + reward[row], lengths_[row] + 1});
        break;
    }
  }
}

TensorMap EpisodeStatistics::Save() const {
  const auto rows = static_cast<int64_t>(returns_.size());
  TensorMap state;
  state.Set("returns", Tensor::From<double>({rows}, returns_));
  state.Set("lengths", Tensor::From<int64_t>({rows}, lengths_));
  return state;
}

void EpisodeStatistics::Load(const TensorMap& state) {
  std::ranges::copy(state.At("returns").data<double>(), returns_.begin());
  std::ranges::copy(state.At("lengths").data<int64_t>(), lengths_.begin());
  ended_.clear();
}

}  // namespace weft
