// What the conformance checks step: batches of an environment under random actions of their own
// stream.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "environments/batch_environment.h"

namespace weft {

inline constexpr uint64_t kConformanceSeed = 11;

uint64_t HashOf(const TimeStep& step);

// A batch with default arguments.
class ConformanceDriver {
 public:
  ConformanceDriver(const EnvironmentEntry& entry, const BatchOptions& options,
                    uint64_t action_seed = kConformanceSeed)
      : ConformanceDriver(entry.make_batch(*entry.make_arguments(), options), action_seed) {}
  explicit ConformanceDriver(std::unique_ptr<BatchEnvironment> batch,
                             uint64_t action_seed = kConformanceSeed)
      : batch_(std::move(batch)),
        step_(batch_->MakeTimeStep()),
        rng_(action_seed, Purpose::kTest),
        action_(
            Tensor::Zeros(spec().action.shape().Prepend(batch_->rows()), spec().action.dtype())) {}

  BatchEnvironment& batch() { return *batch_; }
  const EnvironmentSpec& spec() const { return batch_->spec(); }
  const TimeStep& step() const { return step_; }
  const Tensor& action() const { return action_; }  // of the last step
  StepType type(int64_t row) const {
    return static_cast<StepType>(step_.type.data<uint8_t>()[static_cast<size_t>(row)]);
  }

  void Reset() { batch_->Reset(step_); }
  void Act() {
    SampleActions(spec().action, step_, {&rng_, 1}, action_);
    batch_->Step(action_, step_);
  }
  // One number for everything that `steps` steps write.
  uint64_t Run(int steps) {
    uint64_t hash = HashOf(step_);
    for (int i = 0; i < steps; ++i) {
      Act();
      hash = hash * 31 + HashOf(step_);
    }
    return hash;
  }

 private:
  std::unique_ptr<BatchEnvironment> batch_;
  TimeStep step_;
  Rng rng_;
  Tensor action_;
};

}  // namespace weft
