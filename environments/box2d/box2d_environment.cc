#include "environments/box2d/box2d_environment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace weft {
namespace {

constexpr size_t kStreamNumbers = 6;
constexpr double kHalfWord = 0x1p32;

}  // namespace

Box2dEnvironment::Box2dEnvironment(EnvironmentSpec spec, size_t record)
    : record_(record), spec_(std::make_unique<EnvironmentSpec>(std::move(spec))) {
  const Leaf& leaf = spec_->observation.at(0);
  if (leaf.dtype == DType::kFloat32)
    observation_.resize(static_cast<size_t>(leaf.shape.elements()));
  // Steps allocate nothing up to the time limit.
  history_.reserve(kStreamNumbers + record_ * static_cast<size_t>(spec_->time_limit));
}

void Box2dEnvironment::Reset(Rng& rng, StepRow out) {
  const Rng::State& stream = rng.state();
  history_.clear();
  for (const uint64_t word : {stream.seed, stream.stream, stream.position}) {
    history_.push_back(static_cast<double>(word & 0xFFFFFFFF));
    history_.push_back(static_cast<double>(word >> 32));
  }
  Begin(rng);
  Observe(out.observation);
  out.First();
}

void Box2dEnvironment::Step(ActionRow action, Rng& rng, StepRow out) {
  const size_t begin = history_.size();
  history_.resize(begin + record_);
  const std::span record = std::span(history_).subspan(begin);
  Record(action, rng, record);
  const Outcome outcome = Play(record);
  Observe(out.observation);
  out.Next(outcome.reward, outcome.terminal);
}

void Box2dEnvironment::SetState(std::span<const double> state) {
  Check(state);
  history_.assign(state.begin(), state.end());
  if (state.empty()) return std::fill(observation_.begin(), observation_.end(), 0.0f);
  std::array<uint64_t, 3> words;
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = static_cast<uint64_t>(state[2 * i]) | static_cast<uint64_t>(state[2 * i + 1]) << 32;
  }
  Rng rng({.seed = words[0], .stream = words[1], .position = words[2]});
  Begin(rng);
  for (size_t begin = kStreamNumbers; begin < state.size(); begin += record_)
    Play(state.subspan(begin, record_));
}

void Box2dEnvironment::Check(std::span<const double> state) const {
  if (state.empty()) return;
  WEFT_CHECK(state.size() >= kStreamNumbers && (state.size() - kStreamNumbers) % record_ == 0)
      << "state of " << spec_->id << " of " << state.size() << " numbers, not " << kStreamNumbers
      << " and " << record_ << " for each step";
  for (size_t i = 0; i < state.size(); ++i) {
    const double value = state[i];
    const bool sound = i < kStreamNumbers
                           ? value >= 0 && value < kHalfWord && value == std::floor(value)
                           : std::abs(value) <= 1;
    WEFT_CHECK(sound) << "state of " << spec_->id << ": number " << i << " is " << value;
  }
}

void Box2dEnvironment::Observe(ObservationRow out) {
  std::copy(observation_.begin(), observation_.end(), out.Leaf<float>());
}

}  // namespace weft
