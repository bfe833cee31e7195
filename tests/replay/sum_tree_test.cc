#include "replay/sum_tree.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

#include "base/random.h"

namespace weft {
namespace {

// The definition itself: the first leaf whose inclusive prefix sum exceeds the mass.
int64_t PlainFind(const std::vector<double>& leaves, double mass) {
  double sum = 0;
  for (size_t i = 0; i < leaves.size(); ++i) {
    sum += leaves[i];
    if (mass < sum) return static_cast<int64_t>(i);
  }
  return -1;
}

int64_t Find(const SumTree& tree, double mass) {
  int64_t leaf = -1;
  tree.Find({&mass, 1}, {&leaf, 1});
  return leaf;
}

// Whole numbers: all sums are exact, so tree and plain search must agree on every boundary.
TEST(SumTree, FindsWhatThePlainSearchFindsForAnyCapacityAndAnySequence) {
  Rng rng(1, Purpose::kTest);
  for (const int64_t capacity : {1, 2, 3, 7, 8, 9, 15, 16, 17, 63, 64, 65, 100, 511, 513, 1000}) {
    SumTree tree(capacity);
    std::vector<double> leaves(static_cast<size_t>(capacity));
    for (int step = 0; step < 200; ++step) {
      const auto leaf = static_cast<int64_t>(rng.Below(static_cast<uint64_t>(capacity)));
      const double value = static_cast<double>(rng.Below(4));  // often 0
      tree.Set(leaf, value);
      leaves[static_cast<size_t>(leaf)] = value;
      const double total = std::accumulate(leaves.begin(), leaves.end(), 0.0);
      ASSERT_EQ(tree.total(), total) << "capacity " << capacity;
      if (total == 0) continue;
      for (int draw = 0; draw < 4; ++draw) {
        const auto whole = static_cast<double>(rng.Below(static_cast<uint64_t>(total)));
        for (const double mass : {whole, whole + 0.5}) {
          ASSERT_EQ(Find(tree, mass), PlainFind(leaves, mass)) << "capacity " << capacity;
        }
      }
    }
  }
}

TEST(SumTree, NeverFindsALeafOfZeroWhateverTheRounding) {
  Rng rng(2, Purpose::kTest);
  for (const int64_t capacity : {3, 64, 70, 1000}) {
    SumTree tree(capacity);
    for (int64_t i = 0; i < capacity; ++i) {
      // Priorities over 24 orders of magnitude make most partial sums inexact; the last leaves are
      // 0.
      const bool zero = i >= capacity - 2 || rng.Below(3) == 0;
      tree.Set(i, zero ? 0 : std::pow(10, rng.Uniform(-12, 12)));
    }
    if (tree.total() == 0) continue;
    std::vector<double> masses = {0, tree.total(), std::nextafter(tree.total(), 0),
                                  tree.total() * 2};
    for (int i = 0; i < 2000; ++i) masses.push_back(rng.Uniform() * tree.total());
    for (const double mass : masses) {
      const int64_t leaf = Find(tree, mass);
      ASSERT_LT(leaf, capacity);
      ASSERT_GT(tree.At(leaf), 0.0) << "mass " << mass << " of " << tree.total();
    }
  }
}

TEST(SumTree, TotalDependsOnTheLeavesAloneAndSurvivesSaving) {
  Rng rng(3, Purpose::kTest);
  constexpr int64_t kLeaves = 300;
  std::vector<double> final_value(kLeaves);
  for (double& value : final_value) value = rng.Uniform();
  SumTree ascending(kLeaves), wandering(kLeaves), loaded(kLeaves);
  for (int64_t i = 0; i < kLeaves; ++i) ascending.Set(i, final_value[static_cast<size_t>(i)]);
  for (int i = 0; i < 5000; ++i) {
    wandering.Set(static_cast<int64_t>(rng.Below(kLeaves)), rng.Uniform() * 1e9);
  }
  for (int64_t i = kLeaves; i-- > 0;) wandering.Set(i, final_value[static_cast<size_t>(i)]);
  loaded.Load(wandering.Save());
  EXPECT_EQ(ascending.total(), wandering.total());
  EXPECT_EQ(ascending.total(), loaded.total());
  for (int i = 0; i < 100; ++i) {
    const double mass = rng.Uniform() * ascending.total();
    EXPECT_EQ(Find(ascending, mass), Find(loaded, mass));
  }
}

}  // namespace
}  // namespace weft
