#include "environments/mujoco_task/task_terms.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace weft {
namespace {

// The place of a word in the list that task_config.cc offers.
template <class Enum, size_t n>
Enum At(const std::array<const char*, n>& words, const std::string& word) {
  return static_cast<Enum>(std::ranges::find(words, word) - words.begin());
}

constexpr std::array<const char*, 4> kMeasures = {"value", "absolute", "square", "norm"};
constexpr std::array<const char*, 8> kSigmoids = {"gaussian",   "hyperbolic",  "long_tail",
                                                  "reciprocal", "cosine",      "linear",
                                                  "quadratic",  "tanh_squared"};

}  // namespace

MeasuredTerm::MeasuredTerm(const MujocoPhysics& physics, const TermConfig& config)
    : quantity_(physics, config.Name()),
      values_(quantity_.size()),
      before_(config.rate ? quantity_.size() : 0),
      target_(config.target),
      rate_(config.rate),
      measure_(At<Measure>(kMeasures, config.measure)),
      tolerated_(!config.tolerance.bounds.empty()),
      margin_{.margin = config.tolerance.margin,
              .sigmoid = At<Sigmoid>(kSigmoids, config.tolerance.sigmoid),
              .value_at_margin = config.tolerance.value_at_margin} {
  if (rate_ && !MujocoQuantity::Find(config.kind)->settled)
    throw ConfigProblem("rate", "a " + config.kind + " has no rate: it belongs to forces");
  if (target_.empty()) target_.assign(values_.size(), 0);
  if (target_.size() != values_.size()) {
    throw ConfigProblem("target", "has " + std::to_string(target_.size()) + " numbers for " +
                                      std::to_string(values_.size()) + " values");
  }
  if (measure_ == Measure::kValue && values_.size() != 1) {
    throw ConfigProblem(config.kind, "is " + std::to_string(values_.size()) +
                                         " numbers, and a reward is one: measure says how they "
                                         "become one, component picks one");
  }
  if (tolerated_) {
    low_ = config.tolerance.bounds[0];
    high_ = config.tolerance.bounds[1];
  }
}

void MeasuredTerm::Begin() {
  if (rate_) quantity_.Read(before_.data());
}

double MeasuredTerm::Worth(double seconds) {
  quantity_.Read(values_.data());
  double sum = 0;
  for (size_t i = 0; i < values_.size(); ++i) {
    const double value = (rate_ ? (values_[i] - before_[i]) / seconds : values_[i]) - target_[i];
    sum += measure_ == Measure::kValue      ? value
           : measure_ == Measure::kAbsolute ? std::abs(value)
                                            : value * value;
  }
  const double measured = measure_ == Measure::kNorm ? std::sqrt(sum) : sum;
  return tolerated_ ? Tolerance(measured, low_, high_, margin_) : measured;
}

Condition::Condition(const MujocoPhysics& physics, const ConditionConfig& config)
    : quantity_(physics, config.Name()),
      values_(quantity_.size()),
      low_(config.range[0]),
      high_(config.range[1]) {}

bool Condition::Holds() {
  quantity_.Read(values_.data());
  return std::ranges::all_of(values_,
                             [&](double value) { return low_ <= value && value <= high_; });
}

}  // namespace weft
