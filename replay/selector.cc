#include "replay/selector.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "replay/row_layout.h"
#include "replay/sum_tree.h"

namespace weft {
namespace {

Tensor FromVector(const std::vector<int64_t>& values) {
  return Tensor::From<int64_t>({static_cast<int64_t>(values.size())}, values);
}

std::vector<int64_t> ToVector(const Tensor& tensor) {
  const auto values = tensor.data<int64_t>();
  return {values.begin(), values.end()};
}

// As long as the slots that are in are exactly 0..size-1 (always, in a table that only overwrites),
// no list is kept: drawing then touches no memory.
class UniformSelector final : public Selector {
 public:
  explicit UniformSelector(int64_t capacity) : capacity_(capacity) {}

  void Insert(int64_t slot) override {
    if (slots_.empty()) {
      if (slot < size_) return;
      if (slot == size_) {
        ++size_;
        return;
      }
      List();
    }
    if (position_[static_cast<size_t>(slot)] >= 0) return;
    position_[static_cast<size_t>(slot)] = size_;
    slots_[static_cast<size_t>(size_++)] = slot;
  }
  void Remove(int64_t slot) override {
    if (slots_.empty()) List();
    const int64_t hole = position_[static_cast<size_t>(slot)];
    WEFT_CHECK_GE(hole, 0) << "slot " << slot << " is empty";
    const int64_t last = slots_[static_cast<size_t>(--size_)];
    slots_[static_cast<size_t>(hole)] = last;
    position_[static_cast<size_t>(last)] = hole;
    position_[static_cast<size_t>(slot)] = -1;
  }
  void Sample(Rng& rng, std::span<int64_t> slot, std::span<double> probability) override {
    for (int64_t& drawn : slot) {
      drawn = static_cast<int64_t>(rng.Below(static_cast<uint64_t>(size_)));
      if (!slots_.empty()) drawn = slots_[static_cast<size_t>(drawn)];
    }
    std::fill(probability.begin(), probability.end(), 1.0 / static_cast<double>(size_));
  }
  int64_t size() const override { return size_; }

  TensorMap Save() const override {
    TensorMap state;
    state.Set("size", Tensor::Scalar(static_cast<double>(size_), DType::kInt64));
    if (!slots_.empty()) state.Set("slots", FromVector(slots_));
    return state;
  }
  void Load(const TensorMap& state) override {
    size_ = SavedTensor(state, "size", {}, DType::kInt64).data<int64_t>()[0];
    slots_.clear();
    position_.clear();
    if (!state.Has("slots")) return;
    slots_ = ToVector(SavedTensor(state, "slots", {capacity_}, DType::kInt64));
    position_.assign(slots_.size(), -1);
    for (int64_t i = 0; i < size_; ++i)
      position_[static_cast<size_t>(slots_[static_cast<size_t>(i)])] = i;
  }

 private:
  void List() {
    slots_.resize(static_cast<size_t>(capacity_));
    position_.assign(slots_.size(), -1);
    std::iota(slots_.begin(), slots_.end(), int64_t{0});
    std::iota(position_.begin(), position_.begin() + size_, int64_t{0});
  }

  int64_t capacity_, size_ = 0;
  std::vector<int64_t> slots_;     // the first size_ are in; empty while they are 0..size_-1
  std::vector<int64_t> position_;  // of each slot in slots_, -1 when it is not in
};

// A doubly linked list of slots, oldest first; links of the slot `capacity` are its ends.
class FifoSelector final : public Selector {
 public:
  explicit FifoSelector(int64_t capacity)
      : end_(static_cast<size_t>(capacity)), next_(end_ + 1, -1), previous_(end_ + 1, -1) {
    next_[end_] = previous_[end_] = capacity;
  }

  void Insert(int64_t slot) override {
    if (next_[static_cast<size_t>(slot)] >= 0) Remove(slot);
    Link(previous_[end_], slot);
    Link(slot, static_cast<int64_t>(end_));
    ++size_;
  }
  void Remove(int64_t slot) override {
    const auto index = static_cast<size_t>(slot);
    WEFT_CHECK_GE(next_[index], 0) << "slot " << slot << " is empty";
    Link(previous_[index], next_[index]);
    next_[index] = previous_[index] = -1;
    --size_;
  }
  void Sample(Rng&, std::span<int64_t> slot, std::span<double> probability) override {
    std::fill(slot.begin(), slot.end(), next_[end_]);
    std::fill(probability.begin(), probability.end(), 1.0 / static_cast<double>(size_));
  }
  int64_t size() const override { return size_; }

  TensorMap Save() const override {
    std::vector<int64_t> order;
    for (int64_t slot = next_[end_]; slot != static_cast<int64_t>(end_);
         slot = next_[static_cast<size_t>(slot)]) {
      order.push_back(slot);
    }
    TensorMap state;
    state.Set("order", FromVector(order));
    return state;
  }
  void Load(const TensorMap& state) override {
    *this = FifoSelector(static_cast<int64_t>(end_));
    const Tensor order = SavedTensor(state, "order", {state.At("order").elements()}, DType::kInt64);
    for (const int64_t slot : order.data<int64_t>()) {
      WEFT_CHECK(slot >= 0 && slot < static_cast<int64_t>(end_)) << "saved slot " << slot;
      Insert(slot);
    }
  }

 private:
  void Link(int64_t before, int64_t after) {
    next_[static_cast<size_t>(before)] = after;
    previous_[static_cast<size_t>(after)] = before;
  }

  size_t end_;
  int64_t size_ = 0;
  std::vector<int64_t> next_, previous_;  // -1 when the slot is not in
};

class PrioritisedSelector final : public Selector {
 public:
  PrioritisedSelector(int64_t capacity, const PriorityOptions& options)
      : options_(options), tree_(capacity) {
    WEFT_CHECK(options.alpha >= 0 && options.epsilon > 0)
        << "alpha is at least 0 and epsilon positive";
  }

  void Insert(int64_t slot) override {
    if (tree_.At(slot) == 0) ++size_;
    tree_.Set(slot, largest_);
  }
  void Remove(int64_t slot) override {
    WEFT_CHECK_GT(tree_.At(slot), 0.0) << "slot " << slot << " is empty";
    tree_.Set(slot, 0);
    --size_;
  }
  void Update(int64_t slot, double error) override {
    const double priority = std::pow(std::abs(error) + options_.epsilon, options_.alpha);
    // An alpha so large that the power vanishes must not empty the slot; one so large that it
    // overflows is an error.
    const double bounded = std::max(priority, std::numeric_limits<double>::min());
    WEFT_CHECK(std::isfinite(bounded)) << "priority of error " << error;
    tree_.Set(slot, bounded);
    largest_ = std::max(largest_, bounded);
  }
  void Sample(Rng& rng, std::span<int64_t> slot, std::span<double> probability) override {
    const double part = tree_.total() / static_cast<double>(slot.size());
    for (size_t i = 0; i < slot.size(); ++i) {
      probability[i] = (static_cast<double>(i) + rng.Uniform()) * part;
    }
    tree_.Find(probability, slot);
    for (size_t i = 0; i < slot.size(); ++i) probability[i] = tree_.At(slot[i]) / tree_.total();
  }
  int64_t size() const override { return size_; }

  TensorMap Save() const override {
    TensorMap state;
    state.Set("priorities", tree_.Save());
    state.Set("largest", Tensor::Scalar(largest_, DType::kFloat64));
    return state;
  }
  void Load(const TensorMap& state) override {
    const Tensor priorities = SavedTensor(state, "priorities", {tree_.leaves()}, DType::kFloat64);
    const auto values = priorities.data<double>();
    tree_.Load(priorities);
    size_ = std::count_if(values.begin(), values.end(), [](double value) { return value > 0; });
    largest_ = SavedTensor(state, "largest", {}, DType::kFloat64).data<double>()[0];
  }

 private:
  PriorityOptions options_;
  SumTree tree_;  // 0 where no row is
  int64_t size_ = 0;
  double largest_ = 1;  // Schaul et al. 2016, algorithm 1: p_1 = 1
};

}  // namespace

void Selector::Update(int64_t, double) {}

std::unique_ptr<Selector> MakeSelector(SelectorKind kind, int64_t capacity,
                                       const PriorityOptions& priority) {
  WEFT_CHECK_GT(capacity, 0) << "capacity of a table";
  switch (kind) {
    case SelectorKind::kFifo:
      return std::make_unique<FifoSelector>(capacity);
    case SelectorKind::kPrioritised:
      return std::make_unique<PrioritisedSelector>(capacity, priority);
    default:
      return std::make_unique<UniformSelector>(capacity);
  }
}

}  // namespace weft
