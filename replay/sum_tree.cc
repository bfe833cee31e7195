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

int64_t SumTree::Find(double mass) const {
  int64_t node = 0;  // the group looked at, on each level from the top
  for (size_t level = levels_.size(); level-- > 0;) {
    const double* child = levels_[level] + node * kFan;
    int64_t chosen = -1;
    // Strictly below: a mass that equals a boundary belongs to the next leaf, and a child of 0 is
    // never entered. Where rounding leaves a mass beyond the last child, the last child that is not
    // 0 is taken, and so on further down.
    for (int64_t i = 0; i < kFan; ++i) {
      if (child[i] <= 0) continue;
      if (chosen >= 0) mass -= child[chosen];
      chosen = i;
      if (mass < child[i]) break;
    }
    node = node * kFan + chosen;
  }
  return node;
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
