// Sums over a row of non-negative numbers with drawing in proportion to them (Schaul et al. 2016,
// appendix B.2.1), for any number of leaves. A node sums 8 children that share a cache line, so a
// million leaves are 7 lines deep. Every node is always the sum of its children as they are now,
// never an accumulated difference, so the total depends on the leaves alone and not on how they
// came about.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace weft {

class SumTree {
 public:
  explicit SumTree(int64_t leaves);

  int64_t leaves() const { return leaves_; }
  double total() const { return total_; }
  double At(int64_t leaf) const { return levels_[0][leaf]; }
  // value is finite and >= 0. O(log leaves).
  void Set(int64_t leaf, double value);
  // For each mass the leaf i with sum(0..i-1) <= mass < sum(0..i), up to rounding; never one that
  // is 0. Needs total() > 0 and masses >= 0; one at or above the total gives the last leaf that is
  // not 0. The masses are used up. Many at a time go down level by level, so that their fetches
  // from memory overlap.
  void Find(std::span<double> mass, std::span<int64_t> leaf) const;

  // The leaves as f64 [leaves]; a copy.
  Tensor Save() const;
  void Load(const Tensor& leaves);

 private:
  static constexpr int64_t kFan = 8;
  static int64_t Descend(const double* child, double& mass);
  double SumOfGroup(size_t level, int64_t group) const;

  int64_t leaves_;
  double total_ = 0;
  Tensor memory_;                // f64, all levels, padded with zeros to whole groups
  std::vector<double*> levels_;  // leaves first; the last level is one group
  std::vector<int64_t> groups_;  // of each level
};

}  // namespace weft
