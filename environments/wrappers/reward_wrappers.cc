#include <algorithm>

#include "base/check.h"
#include "base/config.h"
#include "environments/wrappers.h"
#include "environments/wrappers/wrapper.h"

namespace weft {
namespace {

// Rewrites the rewards of rows that take part in a step; those of resets and of absent agents stay
// 0.
class RewardWrapper : public Remembering<Wrapper> {
 public:
  explicit RewardWrapper(std::unique_ptr<BatchEnvironment> inner)
      : Remembering(std::move(inner)), types_(rows()) {}
  void Reset(TimeStep& out) override {
    inner_->Reset(out);
    types_.Remember(out);
  }
  void Step(const Tensor& action, TimeStep& out) override {
    inner_->Step(action, out);
    Reward(out);
    types_.Remember(out);
  }

 protected:
  virtual void Reward(TimeStep& out) = 0;
  void SaveOwn(TensorMap& state) const override { types_.Save("types", state); }
  void LoadOwn(const TensorMap& state) override { types_.Load("types", state); }
  bool TakesPart(size_t row) const { return types_.TakesPart(row); }

 private:
  TypeMemory types_;
};

class ClipRewardWrapper final : public RewardWrapper {
 public:
  ClipRewardWrapper(std::unique_ptr<BatchEnvironment> inner, double low, double high)
      : RewardWrapper(std::move(inner)),
        low_(static_cast<float>(low)),
        high_(static_cast<float>(high)) {
    WEFT_CHECK(low_ < high_) << "bounds of clip_reward";
  }

 private:
  void Reward(TimeStep& out) override {
    const auto rewards = out.reward.data<float>();
    for (size_t row = 0; row < rewards.size(); ++row) {
      if (TakesPart(row)) rewards[row] = std::clamp(rewards[row], low_, high_);
    }
  }

  const float low_, high_;
};

class ShapeRewardWrapper final : public RewardWrapper {
 public:
  ShapeRewardWrapper(std::unique_ptr<BatchEnvironment> inner, RewardShaping shaping)
      : RewardWrapper(std::move(inner)),
        shaping_(std::move(shaping)),
        potential_(Tensor::Zeros({rows()}, DType::kFloat64)) {
    const auto& leaves = spec_.observation;
    const auto floating = [](const Leaf& leaf) {
      return leaf.dtype == DType::kFloat32 || leaf.dtype == DType::kFloat64;
    };
    leaf_ = static_cast<size_t>(std::ranges::find_if(leaves, floating) - leaves.begin());
    const int64_t elements = leaf_ < leaves.size() ? leaves[leaf_].shape.elements() : 0;
    if (!shaping_.potential.empty() && std::ssize(shaping_.potential) != elements) {
      throw ConfigProblem("environment.wrappers", "the potential of reward_shaping has " +
                                                      std::to_string(shaping_.potential.size()) +
                                                      " weights; the first real observation of " +
                                                      spec_.id + " has " +
                                                      std::to_string(elements) + " elements");
    }
  }

  void Reset(TimeStep& out) override {
    RewardWrapper::Reset(out);
    const auto potentials = potential_.data<double>();
    for (size_t row = 0; row < potentials.size(); ++row) potentials[row] = Potential(out, row);
  }

 private:
  void SaveOwn(TensorMap& state) const override {
    RewardWrapper::SaveOwn(state);
    state.Set("potential", potential_.Clone());
  }
  void LoadOwn(const TensorMap& state) override {
    RewardWrapper::LoadOwn(state);
    potential_.CopyFrom(state.At("potential"));
  }

  void Reward(TimeStep& out) override {
    const auto rewards = out.reward.data<float>(), discounts = out.discount.data<float>();
    const auto potentials = potential_.data<double>();
    for (size_t row = 0; row < rewards.size(); ++row) {
      const double next = Potential(out, row);
      if (TakesPart(row)) {
        const double gained = shaping_.gamma * (discounts[row] == 0 ? 0 : next) - potentials[row];
        rewards[row] = static_cast<float>(shaping_.scale * rewards[row] + shaping_.shift + gained);
      }
      potentials[row] = next;
    }
  }

  double Potential(const TimeStep& step, size_t row) const {
    const size_t size = shaping_.potential.size();
    if (size == 0) return 0;
    const auto values = step.observation.entry(leaf_).second.data<float>();
    double sum = 0;
    for (size_t i = 0; i < size; ++i) sum += shaping_.potential[i] * values[row * size + i];
    return sum;
  }

  const RewardShaping shaping_;
  size_t leaf_;       // the first floating one
  Tensor potential_;  // f64 [N], of the last observation
};

class ShareRewardWrapper final : public RewardWrapper {
 public:
  ShareRewardWrapper(std::unique_ptr<BatchEnvironment> inner, bool mean)
      : RewardWrapper(std::move(inner)), mean_(mean) {
    RequireAgents(spec_, "share_reward");
  }

 private:
  void Reward(TimeStep& out) override {
    const auto rewards = out.reward.data<float>();
    const auto agents = static_cast<size_t>(spec_.agent_count());
    for (size_t first = 0; first < rewards.size(); first += agents) {
      double sum = 0;
      int64_t there = 0;
      for (size_t row = first; row < first + agents; ++row) {
        if (!TakesPart(row)) continue;
        sum += rewards[row];
        ++there;
      }
      const auto shared = static_cast<float>(mean_ && there > 0 ? sum / double(there) : sum);
      for (size_t row = first; row < first + agents; ++row) {
        if (TakesPart(row)) rewards[row] = shared;
      }
    }
  }

  const bool mean_;
};

}  // namespace

void RequireAgents(const EnvironmentSpec& spec, const char* wrapper) {
  if (!spec.agents.empty()) return;
  throw ConfigProblem("environment.wrappers",
                      std::string(wrapper) + " needs several agents; " + spec.id + " has one");
}

std::unique_ptr<BatchEnvironment> ClipReward(std::unique_ptr<BatchEnvironment> inner, double low,
                                             double high) {
  return std::make_unique<ClipRewardWrapper>(std::move(inner), low, high);
}
std::unique_ptr<BatchEnvironment> ShapeReward(std::unique_ptr<BatchEnvironment> inner,
                                              const RewardShaping& shaping) {
  return std::make_unique<ShapeRewardWrapper>(std::move(inner), shaping);
}
std::unique_ptr<BatchEnvironment> ShareReward(std::unique_ptr<BatchEnvironment> inner, bool mean) {
  return std::make_unique<ShareRewardWrapper>(std::move(inner), mean);
}

}  // namespace weft
