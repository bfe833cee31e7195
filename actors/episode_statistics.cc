#include "actors/episode_statistics.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "environments/environment.h"

namespace weft {

EpisodeStatistics::EpisodeStatistics(int64_t rows, int64_t agents)
    : agents_(static_cast<size_t>(agents)), returns_(rows), there_(rows), lengths_(rows / agents) {
  WEFT_CHECK_EQ(rows % agents, 0) << "rows of " << agents << " agents each";
}

void EpisodeStatistics::Observe(const TensorMap& step) {
  const auto reward = step.At("reward").data<float>();
  const auto type = step.At("type").data<uint8_t>();
  for (size_t environment = 0; environment < lengths_.size(); ++environment) {
    const size_t first = environment * agents_;
    ObserveEnvironment(environment, &reward[first], &type[first]);
  }
}

void EpisodeStatistics::ObserveEnvironment(size_t environment, const float* reward,
                                           const uint8_t* type) {
  const size_t first = environment * agents_;
  double* returns = &returns_[first];
  uint8_t* there = &there_[first];
  int64_t& length = lengths_[environment];
  constexpr auto kFirst = static_cast<uint8_t>(StepType::kFirst);
  constexpr auto kLast = static_cast<uint8_t>(StepType::kLast);
  bool goes_on = false;
  for (size_t agent = 0; agent < agents_; ++agent)
    goes_on = goes_on || (there[agent] != 0 && type[agent] != kFirst);
  if (!goes_on) {
    std::fill_n(returns, agents_, 0.0);
    length = 0;
  }
  bool stepped = false, over = true;
  for (size_t agent = 0; agent < agents_; ++agent) {
    // A row of its own is never absent.
    if (type[agent] != kFirst && (there[agent] != 0 || agents_ == 1)) {
      returns[agent] += reward[agent];
      stepped = true;
    }
    there[agent] = type[agent] == kFirst || (there[agent] != 0 && type[agent] != kLast) ||
                   (agents_ == 1 && type[agent] != kLast);
    over = over && there[agent] == 0;
  }
  length += stepped;
  if (!stepped || !over) return;
  Episode& episode = ended_.emplace_back();
  episode = {.environment = static_cast<int64_t>(environment),
             .episode_return = std::accumulate(returns, returns + agents_, 0.0),
             .length = length,
             .agent_returns = {}};
  if (agents_ > 1) episode.agent_returns.assign(returns, returns + agents_);
}

TensorMap EpisodeStatistics::Save() const {
  TensorMap state;
  state.Set("returns", Tensor::From<double>({std::ssize(returns_)}, returns_));
  state.Set("there", Tensor::From<uint8_t>({std::ssize(there_)}, there_));
  state.Set("lengths", Tensor::From<int64_t>({std::ssize(lengths_)}, lengths_));
  return state;
}

void EpisodeStatistics::Load(const TensorMap& state) {
  std::ranges::copy(state.At("returns").data<double>(), returns_.begin());
  std::ranges::copy(state.At("there").data<uint8_t>(), there_.begin());
  std::ranges::copy(state.At("lengths").data<int64_t>(), lengths_.begin());
  ended_.clear();
}

}  // namespace weft
