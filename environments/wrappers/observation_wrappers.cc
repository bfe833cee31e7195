#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/config.h"
#include "environments/wrappers.h"
#include "environments/wrappers/wrapper.h"

namespace weft {
namespace {

bool IsReal(const Leaf& leaf) {
  return leaf.dtype == DType::kFloat32 || leaf.dtype == DType::kFloat64;
}

class FrameStackWrapper final : public Remembering<ObservationWrapper> {
 public:
  FrameStackWrapper(std::unique_ptr<BatchEnvironment> inner, int64_t count)
      : Remembering(std::move(inner)), count_(count) {
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

 private:
  void SaveOwn(TensorMap& state) const override {
    for (const auto& [name, tensor] : stack_)
      state.Set("stack." + std::string(name.text()), tensor.Clone());
  }
  void LoadOwn(const TensorMap& state) override {
    for (auto& [name, tensor] : stack_)
      tensor.CopyFrom(state.At("stack." + std::string(name.text())));
  }

  std::vector<double> Repeat(const std::vector<double>& bounds) const {
    std::vector<double> repeated;
    for (int64_t i = 0; i < count_; ++i)
      repeated.insert(repeated.end(), bounds.begin(), bounds.end());
    return repeated;
  }

  // Moves each row's stack on by the newest observation and copies all of it to out.
  void Observe(TimeStep& out) override {
    const auto types = inside_.type.data<uint8_t>();
    for (size_t leaf = 0; leaf < spec_.observation.size(); ++leaf) {
      Tensor& stack = stack_.entry(leaf).second;
      const Tensor& newest = inside_.observation.entry(leaf).second;
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
  }

  int64_t count_;
  TensorMap stack_;  // leaves [N, count * O, ..]
};

class ClipObservationWrapper final : public Wrapper {
 public:
  ClipObservationWrapper(std::unique_ptr<BatchEnvironment> inner, double low, double high)
      : Wrapper(std::move(inner)), low_(static_cast<float>(low)), high_(static_cast<float>(high)) {
    WEFT_CHECK(low_ < high_) << "bounds of clip_observation";
    for (Leaf& leaf : spec_.observation) {
      if (!IsReal(leaf)) continue;
      if (leaf.low.empty()) leaf.low = {low};
      if (leaf.high.empty()) leaf.high = {high};
      for (std::vector<double>* bounds : {&leaf.low, &leaf.high})
        for (double& bound : *bounds) bound = std::clamp(bound, low, high);
    }
  }
  void Reset(TimeStep& out) override {
    inner_->Reset(out);
    Clip(out);
  }
  void Step(const Tensor& action, TimeStep& out) override {
    inner_->Step(action, out);
    Clip(out);
  }

 private:
  void Clip(TimeStep& out) const {
    for (size_t leaf = 0; leaf < spec_.observation.size(); ++leaf) {
      if (!IsReal(spec_.observation[leaf])) continue;
      for (float& value : out.observation.entry(leaf).second.data<float>())
        value = std::clamp(value, low_, high_);
    }
  }

  const float low_, high_;
};

class FlattenWrapper final : public ObservationWrapper {
 public:
  explicit FlattenWrapper(std::unique_ptr<BatchEnvironment> inner)
      : ObservationWrapper(std::move(inner)) {
    const std::vector<Leaf> leaves = std::move(spec_.observation);
    spec_.observation.clear();
    Leaf vector{.name = "observation", .shape = {0}};
    size_t joined = 0;
    for (const Leaf& leaf : leaves) {
      is_part_.push_back(IsPart(leaf));
      if (!is_part_.back()) {
        spec_.observation.push_back(leaf);
        continue;
      }
      if (joined++ == 0) at_ = spec_.observation.size();
      Append(leaf, vector);
    }
    if (joined == 0) {
      throw ConfigProblem("environment.wrappers",
                          "flatten finds no real numbers or bytes in the "
                          "observations of " +
                              spec_.id);
    }
    vector.shape = {std::ssize(vector.low)};
    for (const Leaf& leaf : spec_.observation) {
      if (leaf.name == vector.name) {
        throw ConfigProblem("environment.wrappers", "flatten writes the leaf observation; " +
                                                        spec_.id +
                                                        " has integers of this name besides");
      }
    }
    for (AgentSpec& agent : spec_.agents) {
      if (joined > 1) agent.observation_size = vector.shape[0];
    }
    spec_.observation.insert(spec_.observation.begin() + static_cast<std::ptrdiff_t>(at_),
                             std::move(vector));
  }

 private:
  // What Gymnasium calls a Box, but for the leaves that have a meaning of their own.
  static bool IsPart(const Leaf& leaf) {
    return leaf.dtype != DType::kInt64 && leaf.name != "action_mask" && leaf.name != "state";
  }

  static void Append(const Leaf& leaf, Leaf& vector) {
    const auto elements = static_cast<size_t>(leaf.shape.elements());
    const auto append = [&](const std::vector<double>& from, double unbounded,
                            std::vector<double>& to) {
      for (size_t i = 0; i < elements; ++i)
        to.push_back(from.empty() ? unbounded : from.size() == 1 ? from[0] : from[i]);
    };
    append(leaf.low, -INFINITY, vector.low);
    append(leaf.high, INFINITY, vector.high);
    for (size_t i = 0; i < elements; ++i) {
      const bool named = i < leaf.elements.size();
      vector.elements.push_back(named           ? leaf.elements[i]
                                : elements == 1 ? leaf.name
                                                : leaf.name + "[" + std::to_string(i) + "]");
    }
    vector.nominal = vector.nominal || leaf.nominal;
  }

  void Observe(TimeStep& out) override {
    float* const vector = out.observation.entry(at_).second.data<float>().data();
    const auto width = static_cast<size_t>(spec_.observation[at_].shape[0]);
    size_t column = 0, other = 0;
    for (size_t leaf = 0; leaf < is_part_.size(); ++leaf) {
      const Tensor& from = inside_.observation.entry(leaf).second;
      if (!is_part_[leaf]) {
        if (other == at_) ++other;
        out.observation.entry(other++).second.CopyFrom(from);
      } else if (from.dtype() == DType::kUInt8) {
        column += Join(from.data<uint8_t>(), vector + column, width);
      } else {
        column += Join(from.data<float>(), vector + column, width);
      }
    }
  }

  // Into columns of rows that are `width` apart; returns how many.
  template <class T>
  size_t Join(std::span<const T> from, float* to, size_t width) const {
    const auto count = static_cast<size_t>(rows());
    const size_t elements = from.size() / count;
    for (size_t row = 0; row < count; ++row) {
      for (size_t i = 0; i < elements; ++i)
        to[row * width + i] = static_cast<float>(from[row * elements + i]);
    }
    return elements;
  }

  std::vector<bool> is_part_;  // of the inner leaves
  size_t at_ = 0;              // the vector among the leaves
};

class AgentIdWrapper final : public Remembering<ObservationWrapper> {
 public:
  explicit AgentIdWrapper(std::unique_ptr<BatchEnvironment> inner)
      : Remembering(std::move(inner)), types_(rows()) {
    RequireAgents(spec_, "agent_id");
    if (spec_.Has("agent_id"))
      throw ConfigProblem("environment.wrappers", spec_.id + " has a leaf agent_id already");
    Leaf leaf{.name = "agent_id", .shape = {spec_.agent_count()}, .low = {0}, .high = {1}};
    for (const AgentSpec& agent : spec_.agents) leaf.elements.push_back("is " + agent.name);
    spec_.observation.push_back(std::move(leaf));
  }

 private:
  void SaveOwn(TensorMap& state) const override { types_.Save("types", state); }
  void LoadOwn(const TensorMap& state) override { types_.Load("types", state); }
  void Observe(TimeStep& out) override {
    for (const auto& [name, tensor] : inside_.observation)
      out.observation.At(name.text()).CopyFrom(tensor);
    const auto one_hot = out.observation.At("agent_id").data<float>();
    const auto types = inside_.type.data<uint8_t>();
    const auto agents = static_cast<size_t>(spec_.agent_count());
    std::ranges::fill(one_hot, 0.0f);
    for (size_t row = 0; row < types.size(); ++row) {
      const bool absent =
          !types_.TakesPart(row) && types[row] == static_cast<uint8_t>(StepType::kLast);
      if (!absent) one_hot[row * agents + row % agents] = 1;
    }
    types_.Remember(inside_);
  }

  TypeMemory types_;
};

}  // namespace

std::unique_ptr<BatchEnvironment> FrameStack(std::unique_ptr<BatchEnvironment> inner,
                                             int64_t count) {
  return std::make_unique<FrameStackWrapper>(std::move(inner), count);
}
std::unique_ptr<BatchEnvironment> ClipObservation(std::unique_ptr<BatchEnvironment> inner,
                                                  double low, double high) {
  return std::make_unique<ClipObservationWrapper>(std::move(inner), low, high);
}
std::unique_ptr<BatchEnvironment> Flatten(std::unique_ptr<BatchEnvironment> inner) {
  return std::make_unique<FlattenWrapper>(std::move(inner));
}
std::unique_ptr<BatchEnvironment> AgentId(std::unique_ptr<BatchEnvironment> inner) {
  return std::make_unique<AgentIdWrapper>(std::move(inner));
}

}  // namespace weft
