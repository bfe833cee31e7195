#include <algorithm>
#include <cstring>

#include "base/archive.h"
#include "base/check.h"
#include "base/config.h"
#include "environments/wrappers.h"
#include "environments/wrappers/wrapper.h"

namespace weft {
namespace {

const Box& BoundsOf(const BatchEnvironment& batch, const char* wrapper) {
  const auto* box = batch.spec().action.As<Box>();
  if (box == nullptr) {
    throw ConfigProblem("environment.wrappers", std::string(wrapper) + " needs real actions; " +
                                                    batch.spec().id + " has " +
                                                    batch.spec().action.ToString());
  }
  return *box;
}

// Writes function(element, its index in the row) of every element of an f32 action into a tensor of
// its own.
class ActionWrapper : public Wrapper {
 public:
  ActionWrapper(std::unique_ptr<BatchEnvironment> inner, const char* name)
      : Wrapper(std::move(inner)),
        box_(BoundsOf(*inner_, name)),
        changed_(Tensor::Zeros(inner_->spec().action.shape().Prepend(rows()))) {}

 protected:
  template <class Function>
  void StepWith(const Tensor& action, TimeStep& out, Function function) {
    WEFT_CHECK(action.defined() && action.shape() == changed_.shape())
        << "the action of " << spec_.id << " is " << changed_.shape() << ", not " << action.shape();
    const auto from = action.data<float>();
    const auto to = changed_.data<float>();
    const size_t size = box_.low.size();
    for (size_t i = 0; i < to.size(); i += size) {
      for (size_t k = 0; k < size; ++k) to[i + k] = function(from[i + k], k);
    }
    inner_->Step(changed_, out);
  }

  const Box box_;

 private:
  Tensor changed_;
};

class ClipActionWrapper final : public ActionWrapper {
 public:
  explicit ClipActionWrapper(std::unique_ptr<BatchEnvironment> inner)
      : ActionWrapper(std::move(inner), "clip_action"),
        low_(box_.low.begin(), box_.low.end()),
        high_(box_.high.begin(), box_.high.end()) {}
  void Step(const Tensor& action, TimeStep& out) override {
    // A NaN passes through, for the batch to refuse.
    StepWith(action, out, [&](float value, size_t k) {
      return value < low_[k] ? low_[k] : value > high_[k] ? high_[k] : value;
    });
  }

 private:
  std::vector<float> low_, high_;
};

class ScaleActionWrapper final : public ActionWrapper {
 public:
  explicit ScaleActionWrapper(std::unique_ptr<BatchEnvironment> inner)
      : ActionWrapper(std::move(inner), "scale_action") {
    if (!spec_.action.bounded()) {
      throw ConfigProblem("environment.wrappers", "scale_action needs finite bounds; " + spec_.id +
                                                      " has " + spec_.action.ToString());
    }
    const size_t size = box_.low.size();
    spec_.action = Box{std::vector<double>(size, -1), std::vector<double>(size, 1)};
  }
  void Step(const Tensor& action, TimeStep& out) override {
    StepWith(action, out, [&](float value, size_t k) {
      return static_cast<float>(box_.low[k] + (value + 1.0) * 0.5 * (box_.high[k] - box_.low[k]));
    });
  }
};

class StickyActionsWrapper final : public Remembering<Wrapper> {
 public:
  StickyActionsWrapper(std::unique_ptr<BatchEnvironment> inner, double probability,
                       const BatchOptions& options)
      : Remembering(std::move(inner)),
        probability_(probability),
        executed_(Tensor::Zeros(spec_.action.shape().Prepend(rows()), spec_.action.dtype())),
        types_(rows()) {
    WEFT_CHECK(probability >= 0 && probability < 1) << "probability of sticky_actions";
    if (spec_.Has("action_mask")) {
      throw ConfigProblem(
          "environment.wrappers",
          "sticky_actions may repeat what is no longer legal; " + spec_.id + " has an action_mask");
    }
    // Half of the indices of environments' streams is above all rows.
    constexpr uint64_t kStreams = uint64_t{1} << 39;
    const int64_t first = options.first_row * spec_.agent_count();
    for (int64_t row = 0; row < rows(); ++row)
      rngs_.emplace_back(options.seed, options.purpose,
                         kStreams + static_cast<uint64_t>(first + row));
  }

  void Reset(TimeStep& out) override {
    inner_->Reset(out);
    types_.Remember(out);
  }

  void Step(const Tensor& action, TimeStep& out) override {
    WEFT_CHECK(action.defined() && action.shape() == executed_.shape() &&
               action.dtype() == executed_.dtype())
        << "the action of " << spec_.id << " is " << executed_.dtype() << " " << executed_.shape()
        << ", not " << action.dtype() << " " << action.shape();
    const size_t bytes = executed_.bytes() / rngs_.size();
    for (size_t row = 0; row < rngs_.size(); ++row) {
      const bool may_stick = types_.before(row) == StepType::kMid;
      if (may_stick && rngs_[row].Uniform() < probability_) continue;
      std::memcpy(executed_.raw() + row * bytes, action.raw() + row * bytes, bytes);
    }
    inner_->Step(executed_, out);
    types_.Remember(out);
  }

 private:
  void SaveOwn(TensorMap& state) const override {
    state.Set("sticky.executed", executed_.Clone());
    types_.Save("sticky.types", state);
    Writer out;
    for (const Rng& rng : rngs_) out.Write(rng.state());
    state.Set("sticky.rngs", Tensor::From<uint8_t>({std::ssize(out.bytes())}, out.bytes()));
  }
  void LoadOwn(const TensorMap& state) override {
    executed_.CopyFrom(state.At("sticky.executed"));
    types_.Load("sticky.types", state);
    Reader in(state.At("sticky.rngs").data<uint8_t>());
    for (Rng& rng : rngs_) rng = Rng(in.Read<Rng::State>());
  }

  const double probability_;
  std::vector<Rng> rngs_;  // of each row
  Tensor executed_;        // what the inner batch got last
  TypeMemory types_;
};

}  // namespace

std::unique_ptr<BatchEnvironment> ClipAction(std::unique_ptr<BatchEnvironment> inner) {
  return std::make_unique<ClipActionWrapper>(std::move(inner));
}
std::unique_ptr<BatchEnvironment> ScaleAction(std::unique_ptr<BatchEnvironment> inner) {
  return std::make_unique<ScaleActionWrapper>(std::move(inner));
}
std::unique_ptr<BatchEnvironment> StickyActions(std::unique_ptr<BatchEnvironment> inner,
                                                double probability, const BatchOptions& options) {
  return std::make_unique<StickyActionsWrapper>(std::move(inner), probability, options);
}

}  // namespace weft
