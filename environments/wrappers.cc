#include "environments/wrappers.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/config.h"
#include "base/thread_pool.h"
#include "environments/drawing/canvas.h"

namespace weft {
namespace {

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

const Box& BoundsOf(const BatchEnvironment& batch, const char* wrapper) {
  const auto* box = batch.spec().action.As<Box>();
  if (box == nullptr) {
    throw ConfigProblem("environment.wrappers", std::string(wrapper) + " needs real actions; " +
                                                    batch.spec().id + " has " +
                                                    batch.spec().action.ToString());
  }
  return *box;
}

// All but the observation.
void CopyTail(const TimeStep& from, TimeStep& to) {
  to.reward.CopyFrom(from.reward);
  to.discount.CopyFrom(from.discount);
  to.type.CopyFrom(from.type);
  to.episode_id.CopyFrom(from.episode_id);
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

class ClipRewardWrapper final : public Wrapper {
 public:
  ClipRewardWrapper(std::unique_ptr<BatchEnvironment> inner, double low, double high)
      : Wrapper(std::move(inner)), low_(static_cast<float>(low)), high_(static_cast<float>(high)) {
    WEFT_CHECK(low_ < high_) << "bounds of clip_reward";
  }
  void Step(const Tensor& action, TimeStep& out) override {
    inner_->Step(action, out);
    const auto types = out.type.data<uint8_t>();
    const auto rewards = out.reward.data<float>();
    for (size_t row = 0; row < rewards.size(); ++row) {
      if (types[row] != static_cast<uint8_t>(StepType::kFirst))
        rewards[row] = std::clamp(rewards[row], low_, high_);
    }
  }

 private:
  float low_, high_;
};

class FrameStackWrapper final : public Wrapper {
 public:
  FrameStackWrapper(std::unique_ptr<BatchEnvironment> inner, int64_t count)
      : Wrapper(std::move(inner)), count_(count), single_(inner_->MakeTimeStep()) {
    WEFT_CHECK(count >= 1) << "frame_stack of " << count;
    for (Leaf& leaf : spec_.observation) {
      if (leaf.name == "action_mask") continue;
      if (leaf.low.size() > 1) leaf.low = Repeat(leaf.low);
      if (leaf.high.size() > 1) leaf.high = Repeat(leaf.high);
      leaf.shape =
          leaf.shape.rank() == 0 ? Shape{count} : leaf.shape.WithDim(0, leaf.shape[0] * count);
    }
    stack_ = weft::MakeTimeStep(spec_, rows()).observation;
  }

  void Reset(TimeStep& out) override {
    inner_->Reset(single_);
    Push(out);
  }
  void Step(const Tensor& action, TimeStep& out) override {
    inner_->Step(action, single_);
    Push(out);
  }
  TensorMap Save() const override {
    TensorMap state;
    state.Merge("inner", inner_->Save());
    for (const auto& [name, tensor] : stack_)
      state.Set("stack." + std::string(name.text()), tensor.Clone());
    return state;
  }
  void Load(const TensorMap& state) override {
    inner_->Load(state.Extract("inner"));
    for (auto& [name, tensor] : stack_)
      tensor.CopyFrom(state.At("stack." + std::string(name.text())));
  }

 private:
  std::vector<double> Repeat(const std::vector<double>& bounds) const {
    std::vector<double> repeated;
    for (int64_t i = 0; i < count_; ++i)
      repeated.insert(repeated.end(), bounds.begin(), bounds.end());
    return repeated;
  }

  // Moves each row's stack on by the observation in single_ and copies all of it to out.
  void Push(TimeStep& out) {
    const auto types = single_.type.data<uint8_t>();
    for (size_t leaf = 0; leaf < spec_.observation.size(); ++leaf) {
      Tensor& stack = stack_.entry(leaf).second;
      const Tensor& newest = single_.observation.entry(leaf).second;
      const size_t frame = newest.bytes() / types.size(), bytes = stack.bytes() / types.size();
      for (size_t row = 0; row < types.size(); ++row) {
        std::byte* to = stack.raw() + row * bytes;
        const std::byte* from = newest.raw() + row * frame;
        if (types[row] == static_cast<uint8_t>(StepType::kFirst)) {
          for (size_t offset = 0; offset < bytes; offset += frame)
            std::memcpy(to + offset, from, frame);
        } else {
          std::memmove(to, to + frame, bytes - frame);
          std::memcpy(to + bytes - frame, from, frame);
        }
      }
      out.observation.entry(leaf).second.CopyFrom(stack);
    }
    CopyTail(single_, out);
  }

  int64_t count_;
  TimeStep single_;  // what the inner batch writes
  TensorMap stack_;  // leaves [N, count * O, ..]
};

class PixelWrapper final : public Wrapper {
 public:
  PixelWrapper(std::unique_ptr<BatchEnvironment> inner, const PixelOptions& options)
      : Wrapper(std::move(inner)),
        options_(options),
        inside_(inner_->MakeTimeStep()),
        pictures_(static_cast<size_t>(rows() / spec_.agent_count()),
                  Picture(options.width, options.height)) {
    if (spec_.appearance.width == 0) {
      throw ConfigProblem("environment.wrappers",
                          "pixels needs an environment that draws pictures, not " + spec_.id);
    }
    if (!options.keep_state) spec_.observation.clear();
    spec_.observation.push_back({.name = "pixels",
                                 .shape = {3, options.height, options.width},
                                 .dtype = DType::kUInt8,
                                 .low = {0},
                                 .high = {255}});
  }

  void Reset(TimeStep& out) override {
    inner_->Reset(inside_);
    Show(out);
  }
  void Step(const Tensor& action, TimeStep& out) override {
    inner_->Step(action, inside_);
    Show(out);
  }

 private:
  void Show(TimeStep& out) {
    if (options_.keep_state) {
      for (const auto& [name, tensor] : inside_.observation)
        out.observation.At(name.text()).CopyFrom(tensor);
    }
    CopyTail(inside_, out);
    Tensor& pixels = out.observation.At("pixels");
    const auto count = static_cast<int64_t>(pictures_.size());
    auto draw = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) Draw(i, pixels);
    };
    if (options_.pool == nullptr || count == 1) return draw(0, count);
    options_.pool->ParallelForDynamic(count, 1, draw);
  }

  // Of one environment, for all its agents.
  void Draw(int64_t environment, Tensor& pixels) {
    Picture& picture = pictures_[static_cast<size_t>(environment)];
    Canvas canvas(picture, options_.camera);
    inner_->Render(environment, canvas);
    const auto area = static_cast<size_t>(picture.width * picture.height);
    const auto agents = static_cast<size_t>(spec_.agent_count());
    uint8_t* plane =
        pixels.data<uint8_t>().data() + static_cast<size_t>(environment) * agents * 3 * area;
    for (size_t i = 0; i < 3 * agents; ++i, plane += area) {
      for (size_t k = 0; k < area; ++k) plane[k] = picture.pixels[3 * k + i % 3];
    }
  }

  const PixelOptions options_;
  TimeStep inside_;                // what the inner batch writes
  std::vector<Picture> pictures_;  // of each environment
};

}  // namespace

std::unique_ptr<BatchEnvironment> ClipAction(std::unique_ptr<BatchEnvironment> inner) {
  return std::make_unique<ClipActionWrapper>(std::move(inner));
}
std::unique_ptr<BatchEnvironment> ScaleAction(std::unique_ptr<BatchEnvironment> inner) {
  return std::make_unique<ScaleActionWrapper>(std::move(inner));
}
std::unique_ptr<BatchEnvironment> ClipReward(std::unique_ptr<BatchEnvironment> inner, double low,
                                             double high) {
  return std::make_unique<ClipRewardWrapper>(std::move(inner), low, high);
}
std::unique_ptr<BatchEnvironment> FrameStack(std::unique_ptr<BatchEnvironment> inner,
                                             int64_t count) {
  return std::make_unique<FrameStackWrapper>(std::move(inner), count);
}

std::unique_ptr<BatchEnvironment> ObservePixels(std::unique_ptr<BatchEnvironment> inner,
                                                const PixelOptions& options) {
  return std::make_unique<PixelWrapper>(std::move(inner), options);
}

}  // namespace weft
