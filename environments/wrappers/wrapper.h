// What the wrappers share: forwarding, and the memory of which rows took part in a step.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "environments/batch_environment.h"

namespace weft {

// Forwards everything; each wrapper overrides what it changes.
class Wrapper : public BatchEnvironment {
 public:
  explicit Wrapper(std::unique_ptr<BatchEnvironment> inner)
      : inner_(std::move(inner)), spec_(inner_->spec()) {}
  const EnvironmentSpec& spec() const override { return spec_; }
  int64_t rows() const override { return inner_->rows(); }
  TimeStep MakeTimeStep() const override { return weft::MakeTimeStep(spec_, rows()); }
  void Reset(TimeStep& out) override { inner_->Reset(out); }
  void Step(const Tensor& action, TimeStep& out) override { inner_->Step(action, out); }
  void Render(int64_t environment, Canvas& canvas) const override {
    inner_->Render(environment, canvas);
  }
  std::string Text(int64_t environment) const override { return inner_->Text(environment); }
  TensorMap Save() const override { return inner_->Save(); }
  void Load(const TensorMap& state) override { inner_->Load(state); }

 protected:
  std::unique_ptr<BatchEnvironment> inner_;
  EnvironmentSpec spec_;  // as seen from outside
};

// Rewrites observations: the inner batch writes a time step of its own.
class ObservationWrapper : public Wrapper {
 public:
  explicit ObservationWrapper(std::unique_ptr<BatchEnvironment> inner)
      : Wrapper(std::move(inner)), inside_(inner_->MakeTimeStep()) {}
  void Reset(TimeStep& out) override {
    inner_->Reset(inside_);
    Finish(out);
  }
  void Step(const Tensor& action, TimeStep& out) override {
    inner_->Step(action, inside_);
    Finish(out);
  }

 protected:
  // All leaves of out.observation from inside_.
  virtual void Observe(TimeStep& out) = 0;

  TimeStep inside_;

 private:
  void Finish(TimeStep& out) {
    Observe(out);
    out.reward.CopyFrom(inside_.reward);
    out.discount.CopyFrom(inside_.discount);
    out.type.CopyFrom(inside_.type);
    out.episode_id.CopyFrom(inside_.episode_id);
  }
};

// Of a wrapper with a state of its own: Base is Wrapper or ObservationWrapper.
template <class Base>
class Remembering : public Base {
 public:
  using Base::Base;
  TensorMap Save() const final {
    TensorMap state;
    state.Merge("inner", this->inner_->Save());
    SaveOwn(state);
    return state;
  }
  void Load(const TensorMap& state) final {
    this->inner_->Load(state.Extract("inner"));
    LoadOwn(state);
  }

 protected:
  // Entries beside those of the inner batch.
  virtual void SaveOwn(TensorMap& state) const = 0;
  virtual void LoadOwn(const TensorMap& state) = 0;
};

// Throws ConfigProblem("environment.wrappers") for an environment of one agent.
void RequireAgents(const EnvironmentSpec& spec, const char* wrapper);

// Remembers the step types of the last time step. A row takes part in a step unless its type before
// is kLast: then it is reset, or its agent is absent or comes.
class TypeMemory {
 public:
  explicit TypeMemory(int64_t rows)
      : types_(Tensor::Full({rows}, static_cast<double>(StepType::kLast), DType::kUInt8)) {}

  StepType before(size_t row) const { return static_cast<StepType>(types_.data<uint8_t>()[row]); }
  bool TakesPart(size_t row) const { return before(row) != StepType::kLast; }
  void Remember(const TimeStep& step) { types_.CopyFrom(step.type); }

  // As the entry `name` of a state.
  void Save(const char* name, TensorMap& state) const { state.Set(name, types_.Clone()); }
  void Load(const char* name, const TensorMap& state) { types_.CopyFrom(state.At(name)); }

 private:
  Tensor types_;  // u8 [N]
};

}  // namespace weft
