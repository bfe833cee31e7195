#include "replay/sum_tree.h"

#include <algorithm>

#include "base/check.h"

namespace weft {

SumTree::SumTree(int64_t leaves) : leaves_(leaves) {
  WEFT_CHECK_GT(leaves, 0) << "leaves of a sum tree";
  int64_t nodes = 0;
  for (int64_t width = leaves;;) {
    groups_.push_back((width + kFan - 1) / kFan);
    nodes += groups_.back() * kFan;
    if (groups_.back() == 1) break;
    width = groups_.back();
  }
  memory_ = Tensor::Zeros({nodes}, DType::kFloat64);
  double* level = memory_.data<double>().data();
  for (const int64_t groups : groups_) {
    levels_.push_back(level);
    level += groups * kFan;
  }
}

double SumTree::SumOfGroup(size_t level, int64_t group) const {
  const double* child = levels_[level] + group * kFan;
  return ((child[0] + child[1]) + (child[2] + child[3])) +
         ((child[4] + child[5]) + (child[6] + child[7]));
}

void SumTree::Set(int64_t leaf, double value) {
  levels_[0][leaf] = value;
  int64_t group = leaf / kFan;
  for (size_t level = 0; level + 1 < levels_.size(); ++level) {
    levels_[level + 1][group] = SumOfGroup(level, group);
    group /= kFan;
  }
  total_ = SumOfGroup(levels_.size() - 1, 0);
}

// The child of a group that the mass falls into; takes what lies before it off the mass.
inline int64_t SumTree::Descend(const double* child, double& mass) {
  // Strictly below: a mass that equals a boundary belongs to the next child, so a child of 0 has no
  // place. Counting instead of stopping saves a branch that is hard to predict.
  double before = 0, sum = 0;
  int64_t chosen = 0;
  for (int64_t i = 0; i < kFan; ++i) {
    sum += child[i];
    const bool passed = mass >= sum;
    chosen += passed;
    before = passed ? sum : before;
  }
  if (chosen < kFan) [[likely]] {
    mass -= before;
    return chosen;
  }
  // Rounding left a mass at or beyond the end: the last child that is not 0, here and on all levels
  // below.
  while (child[--chosen] == 0) {
  }
  return chosen;
}

void SumTree::Find(std::span<double> mass, std::span<int64_t> leaf) const {
  WEFT_CHECK_GT(total_, 0.0) << "a sum tree without a leaf above 0";
  std::fill(leaf.begin(), leaf.end(), int64_t{0});
  for (size_t level = levels_.size(); level-- > 0;) {
    const double* nodes = levels_[level];
    const double* below = level > 0 ? levels_[level - 1] : nodes;
    for (size_t i = 0; i < leaf.size(); ++i) {
      leaf[i] = Descend(nodes + leaf[i] * kFan, mass[i]) + leaf[i] * kFan;
      __builtin_prefetch(below + (level > 0 ? leaf[i] * kFan : leaf[i]));
    }
  }
}

Tensor SumTree::Save() const {
  Tensor leaves = Tensor::Empty({leaves_}, DType::kFloat64);
  std::copy_n(levels_[0], leaves_, leaves.data<double>().data());
  return leaves;
}

void SumTree::Load(const Tensor& leaves) {
  const auto values = leaves.data<double>();
  WEFT_CHECK_EQ(leaves.elements(), leaves_) << "saved priorities";
  std::copy_n(values.data(), leaves_, levels_[0]);
  for (size_t level = 0; level + 1 < levels_.size(); ++level) {
    for (int64_t group = 0; group < groups_[level]; ++group) {
      levels_[level + 1][group] = SumOfGroup(level, group);
    }
  }
  total_ = SumOfGroup(levels_.size() - 1, 0);
}

}  // namespace weft
