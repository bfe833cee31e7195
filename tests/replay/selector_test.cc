#include "replay/selector.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <vector>

#include "base/check.h"

namespace weft {
namespace {

constexpr SelectorKind kKinds[] = {SelectorKind::kUniform, SelectorKind::kFifo,
                                   SelectorKind::kPrioritised};

struct Draw {
  int64_t slot = -1;
  double probability = -1;
};

std::vector<Draw> Sample(Selector& selector, size_t count, Rng& rng) {
  std::vector<int64_t> slots(count, -1);
  std::vector<double> probability(count, -1);
  selector.Sample(rng, slots, probability);
  std::vector<Draw> draws;
  for (size_t i = 0; i < count; ++i) draws.push_back({slots[i], probability[i]});
  return draws;
}

TEST(Selector, DrawsOnlySlotsThatAreInAfterAnySequence) {
  constexpr int64_t kCapacity = 37;
  for (const SelectorKind kind : kKinds) {
    Rng rng(4, Purpose::kTest);
    const auto selector = MakeSelector(kind, kCapacity);
    std::set<int64_t> in;
    for (int step = 0; step < 3000; ++step) {
      const auto slot = static_cast<int64_t>(rng.Below(kCapacity));
      if (rng.Below(2) == 0) {
        selector->Insert(slot);
        in.insert(slot);
      } else if (in.erase(slot) == 1) {
        selector->Remove(slot);
      }
      ASSERT_EQ(selector->size(), static_cast<int64_t>(in.size()));
      if (in.empty()) continue;
      const Draw draw = Sample(*selector, 3, rng)[2];
      ASSERT_TRUE(in.contains(draw.slot)) << "kind " << static_cast<int>(kind);
      ASSERT_GT(draw.probability, 0);
      ASSERT_LE(draw.probability, 1);
    }
  }
}

TEST(Selector, UniformDrawsEverySlotEquallyOftenWithAndWithoutHoles) {
  Rng rng(5, Purpose::kTest);
  const auto selector = MakeSelector(SelectorKind::kUniform, 10);
  for (int64_t slot = 0; slot < 10; ++slot) selector->Insert(slot);
  for (const int64_t slots : {10, 8}) {
    std::map<int64_t, int> count;
    for (int i = 0; i < 20000; ++i) ++count[Sample(*selector, 1, rng)[0].slot];
    ASSERT_EQ(count.size(), static_cast<size_t>(slots));
    // Five standard deviations of a binomial count.
    const double expected = 20000.0 / static_cast<double>(slots);
    for (const auto& [slot, times] : count) EXPECT_NEAR(times, expected, 5 * std::sqrt(expected));
    if (slots == 10) {
      selector->Remove(3);
      selector->Remove(0);
    }
  }
}

TEST(Selector, FifoGivesTheOldestAndRenewedSlotsGoToTheEnd) {
  Rng rng(6, Purpose::kTest);
  const auto selector = MakeSelector(SelectorKind::kFifo, 4);
  for (const int64_t slot : {2, 0, 3}) selector->Insert(slot);
  EXPECT_EQ(Sample(*selector, 1, rng)[0].slot, 2);
  selector->Insert(2);
  EXPECT_EQ(Sample(*selector, 1, rng)[0].slot, 0);
  selector->Remove(0);
  EXPECT_EQ(Sample(*selector, 1, rng)[0].slot, 3);
  EXPECT_EQ(rng.state().position, 0u) << "a queue uses no randomness";
}

TEST(Selector, PrioritisedDrawsInProportionToThePowerOfTheError) {
  Rng rng(7, Purpose::kTest);
  const PriorityOptions options{.alpha = 0.5, .epsilon = 0.25};
  const auto selector = MakeSelector(SelectorKind::kPrioritised, 3, options);
  for (int64_t slot = 0; slot < 3; ++slot) selector->Insert(slot);
  // (|e| + 1/4)^(1/2): 2, 0.5, 1.5.
  selector->Update(0, -3.75);
  selector->Update(1, 0);
  selector->Update(2, 2);
  const double expected[] = {0.5, 0.125, 0.375};
  constexpr int kDraws = 16000;
  int count[3] = {};
  for (const Draw& draw : Sample(*selector, kDraws, rng)) {
    EXPECT_DOUBLE_EQ(draw.probability, expected[draw.slot]);
    ++count[draw.slot];
  }
  for (int slot = 0; slot < 3; ++slot) {
    EXPECT_NEAR(count[slot], kDraws * expected[slot], 5 * std::sqrt(kDraws * expected[slot]));
  }
}

TEST(Selector, NewRowsGetTheLargestPrioritySoFar) {
  Rng rng(8, Purpose::kTest);
  const auto selector = MakeSelector(SelectorKind::kPrioritised, 4, {.alpha = 1, .epsilon = 1e-6});
  selector->Insert(0);
  selector->Update(0, 7);
  selector->Update(0, 1);  // the largest stays 7
  selector->Insert(1);
  for (const Draw& draw : Sample(*selector, 50, rng)) {
    EXPECT_NEAR(draw.probability, draw.slot == 1 ? 7.0 / 8 : 1.0 / 8, 1e-6);
  }
}

TEST(Selector, StrataCoverTheWholeRange) {
  Rng rng(9, Purpose::kTest);
  const auto selector = MakeSelector(SelectorKind::kPrioritised, 16);
  for (int64_t slot = 0; slot < 16; ++slot) selector->Insert(slot);
  // Equal priorities and as many strata as slots: each slot once.
  const std::vector<Draw> draws = Sample(*selector, 16, rng);
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(draws[i].slot, static_cast<int64_t>(i));
}

TEST(Selector, ALoadedSelectorDrawsTheSame) {
  for (const SelectorKind kind : kKinds) {
    Rng rng(10, Purpose::kTest);
    const auto original = MakeSelector(kind, 50), loaded = MakeSelector(kind, 50);
    for (int64_t slot = 0; slot < 40; ++slot) original->Insert(slot);
    for (int64_t slot = 5; slot < 30; slot += 3) original->Remove(slot);
    for (int64_t slot = 30; slot < 40; ++slot) original->Update(slot, static_cast<double>(slot));
    loaded->Load(original->Save());
    loaded->Insert(7);
    original->Insert(7);
    ASSERT_EQ(original->size(), loaded->size());
    Rng same = rng;
    const std::vector<Draw> a = Sample(*original, 100, rng), b = Sample(*loaded, 100, same);
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i].slot, b[i].slot);
      ASSERT_EQ(a[i].probability, b[i].probability);
    }
  }
}

}  // namespace
}  // namespace weft
