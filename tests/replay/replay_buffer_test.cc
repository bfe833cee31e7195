#include "replay/replay_buffer.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "base/check.h"

namespace weft {
namespace {

// Rows that say who they are: "x" f32 [2] = {id, -id}, "pixel" u8 [3] = id mod 256.
ReplayOptions Options(int64_t capacity) {
  ReplayOptions options;
  options.leaves = {{"x", {2}}, {"pixel", {3}, DType::kUInt8}};
  options.capacity = capacity;
  return options;
}

TensorMap Rows(int64_t first, int64_t count) {
  Tensor x = Tensor::Empty({count, 2}), pixel = Tensor::Empty({count, 3}, DType::kUInt8);
  for (int64_t i = 0; i < count; ++i) {
    x.data<float>()[static_cast<size_t>(2 * i)] = static_cast<float>(first + i);
    x.data<float>()[static_cast<size_t>(2 * i + 1)] = -static_cast<float>(first + i);
    for (int64_t k = 0; k < 3; ++k) {
      pixel.data<uint8_t>()[static_cast<size_t>(3 * i + k)] = static_cast<uint8_t>(first + i);
    }
  }
  TensorMap rows;
  rows.Set("x", x);
  rows.Set("pixel", pixel);
  return rows;
}

// The ids of a batch, after checking that all leaves of each row belong together.
std::vector<int64_t> Ids(const TensorMap& batch) {
  std::vector<int64_t> ids;
  const auto x = batch.At("x").data<float>();
  const auto pixel = batch.At("pixel").data<uint8_t>();
  for (size_t i = 0; i < x.size() / 2; ++i) {
    EXPECT_EQ(x[2 * i], -x[2 * i + 1]);
    for (size_t k = 0; k < 3; ++k) EXPECT_EQ(pixel[3 * i + k], static_cast<uint8_t>(x[2 * i]));
    ids.push_back(static_cast<int64_t>(x[2 * i]));
  }
  return ids;
}

TEST(ReplayBuffer, KeepsTheNewestRowsAndGivesThemBackWhole) {
  ReplayBuffer table(Options(10));
  Rng rng(1, Purpose::kTest);
  TensorMap batch;
  EXPECT_FALSE(table.Sample(4, 1, rng, batch)) << "an empty table has nothing to give";
  for (int64_t first = 0; first < 24; first += 4) ASSERT_TRUE(table.Insert(Rows(first, 4)));
  EXPECT_EQ(table.size(), 10);
  EXPECT_EQ(table.inserted(), 24);
  std::set<int64_t> seen;
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(table.Sample(8, 1, rng, batch));
    const std::vector<int64_t> ids = Ids(batch);
    seen.insert(ids.begin(), ids.end());
    const auto keys = batch.At("key").data<int64_t>();
    const auto index = batch.At("index").data<int64_t>();
    for (size_t k = 0; k < ids.size(); ++k) {
      EXPECT_EQ(keys[k], ids[k]) << "rows are numbered as they came";
      EXPECT_EQ(index[k], ids[k] % 10);
      EXPECT_EQ(batch.At("weight").data<float>()[k], 1.0f);
    }
  }
  EXPECT_EQ(*seen.begin(), 14);
  EXPECT_EQ(seen.size(), 10u);
}

TEST(ReplayBuffer, ManySmallSegmentsActAsOne) {
  ReplayOptions options;
  options.leaves = {{"frame_bytes", {3, 1 << 20}, DType::kUInt8}};  // 3 MiB rows: 8 to a segment
  options.capacity = 11;
  ReplayBuffer table(options);
  for (int value = 0; value < 13; ++value) {
    TensorMap rows;
    rows.Set("frame_bytes", Tensor::Full({1, 3, 1 << 20}, value, DType::kUInt8));
    table.Insert(rows);
  }
  Rng rng(2, Purpose::kTest);
  TensorMap batch;
  std::set<int> seen;
  for (int i = 0; i < 60; ++i) {
    table.Sample(1, 1, rng, batch);
    const auto bytes = batch.At("frame_bytes").data<uint8_t>();
    EXPECT_EQ(bytes.front(), bytes.back());
    EXPECT_EQ(bytes.front(), batch.At("key").data<int64_t>()[0]);
    seen.insert(bytes.front());
  }
  EXPECT_EQ(seen.size(), 11u);
  EXPECT_EQ(*seen.begin(), 2);
  EXPECT_EQ(ReplayBytes(options), 11 * ((3 << 20) + 8));
}

TEST(ReplayBuffer, ABatchThatNobodyHoldsIsWrittenInPlace) {
  ReplayBuffer table(Options(100));
  table.Insert(Rows(0, 100));
  Rng rng(3, Purpose::kTest);
  TensorMap batch;
  table.Sample(32, 1, rng, batch);
  const std::byte* memory = batch.At("x").raw();
  const int64_t calls = TensorAllocator().system_calls;
  for (int i = 0; i < 20; ++i) table.Sample(32, 1, rng, batch);
  EXPECT_EQ(batch.At("x").raw(), memory);
  EXPECT_EQ(TensorAllocator().system_calls, calls);
  const Tensor held = batch.At("x");
  const std::vector<float> before(held.data<float>().begin(), held.data<float>().end());
  table.Sample(32, 1, rng, batch);
  EXPECT_NE(batch.At("x").raw(), memory) << "a held batch must not change under its reader";
  EXPECT_TRUE(std::equal(before.begin(), before.end(), held.data<float>().begin()));
}

TEST(ReplayBuffer, WeightsAreInverseToProbabilityAndAtMostOne) {
  ReplayOptions options = Options(4);
  options.sampler = SelectorKind::kPrioritised;
  options.priority = {.alpha = 1, .epsilon = 1e-9};
  ReplayBuffer table(options);
  table.Insert(Rows(0, 4), Tensor::From<float>({4}, {1, 2, 4, 1}));
  Rng rng(4, Purpose::kTest);
  TensorMap batch;
  table.Sample(64, 0.5, rng, batch);
  // P = p / 8, N = 4: (4 P)^-0.5 = (p / 2)^-0.5, over its largest, that of p = 1.
  const double expected[] = {1, std::sqrt(0.5), 0.5, 1};
  const std::vector<int64_t> ids = Ids(batch);
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_NEAR(batch.At("weight").data<float>()[i], expected[ids[i]], 1e-6);
  }
  EXPECT_EQ(std::set<int64_t>(ids.begin(), ids.end()).size(), 4u);
}

TEST(ReplayBuffer, PrioritiesOfOverwrittenRowsAreIgnored) {
  ReplayOptions options = Options(4);
  options.sampler = SelectorKind::kPrioritised;
  ReplayBuffer table(options);
  table.Insert(Rows(0, 4));
  table.Insert(Rows(4, 1));  // overwrites row 0 in slot 0
  const Tensor index = Tensor::From<int64_t>({2}, {0, 1}), key = Tensor::From<int64_t>({2}, {0, 1});
  EXPECT_EQ(table.UpdatePriorities(index, key, Tensor::From<float>({2}, {1e6, 0})), 1);
  Rng rng(5, Purpose::kTest);
  TensorMap batch;
  table.Sample(300, 1, rng, batch);
  const std::vector<int64_t> ids = Ids(batch);
  EXPECT_NEAR(static_cast<double>(std::count(ids.begin(), ids.end(), 4)), 100, 5)
      << "still as likely as rows 2 and 3";
  EXPECT_LT(std::count(ids.begin(), ids.end(), 1), 3);
}

TEST(ReplayBuffer, ErrorsThatAreNotFiniteAreRefusedWithTheirRow) {
  ReplayOptions options = Options(4);
  options.sampler = SelectorKind::kPrioritised;
  ReplayBuffer table(options);
  table.Insert(Rows(0, 4));
  const Tensor index = Tensor::From<int64_t>({3}, {0, 1, 2});
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), INFINITY, -INFINITY}) {
    try {
      table.UpdatePriorities(index, index, Tensor::From<float>({3}, {5, bad, 1}));
      FAIL() << "accepted " << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDiverged);
      EXPECT_NE(error.message().find("row 1"), std::string::npos) << error.message();
    }
  }
  Rng rng(6, Purpose::kTest);
  TensorMap batch;
  table.Sample(4, 1, rng, batch);
  EXPECT_EQ(Ids(batch), (std::vector<int64_t>{0, 1, 2, 3}))
      << "nothing was changed before the throw";
}

TEST(ReplayBuffer, AQueueGivesEachRowOnceInOrder) {
  ReplayOptions options = Options(6);
  options.sampler = SelectorKind::kFifo;
  options.max_times_sampled = 1;
  ReplayBuffer table(options);
  Rng rng(7, Purpose::kTest);
  TensorMap batch;
  int64_t next_in = 0, next_out = 0;
  for (int round = 0; round < 20; ++round) {
    table.Insert(Rows(next_in, 4));
    next_in += 4;
    while (table.Sample(3, 1, rng, batch)) {
      for (const int64_t id : Ids(batch)) ASSERT_EQ(id, next_out++);
    }
    EXPECT_EQ(table.size(), next_in - next_out);
    EXPECT_LT(table.size(), 3);
  }
  EXPECT_FALSE(table.Sample(table.size() + 1, 1, rng, batch));
}

TEST(ReplayBuffer, AFullQueueDropsTheOldest) {
  ReplayOptions options = Options(4);
  options.sampler = SelectorKind::kFifo;
  options.max_times_sampled = 1;
  ReplayBuffer table(options);
  table.Insert(Rows(0, 7));
  Rng rng(8, Purpose::kTest);
  TensorMap batch;
  ASSERT_TRUE(table.Sample(4, 1, rng, batch));
  EXPECT_EQ(Ids(batch), (std::vector<int64_t>{3, 4, 5, 6}));
}

TEST(ReplayBuffer, NoRowIsDrawnMoreOftenThanItsLimit) {
  ReplayOptions options = Options(8);
  options.max_times_sampled = 3;
  ReplayBuffer table(options);
  Rng rng(9, Purpose::kTest);
  TensorMap batch;
  std::map<int64_t, int> draws;
  int64_t sampled = 0;
  for (int64_t first = 0; first < 64; first += 8) {
    table.Insert(Rows(first, 8));
    while (table.Sample(5, 1, rng, batch)) {
      for (const int64_t id : Ids(batch)) ++draws[id];
      sampled += 5;
    }
  }
  for (const auto& [id, count] : draws) EXPECT_LE(count, 3) << id;
  EXPECT_EQ(table.sampled(), sampled);
  EXPECT_GT(sampled, 150);
}

TEST(ReplayBuffer, ARemoverThatDrawsLeavesOldRowsIn) {
  ReplayOptions options = Options(50);
  options.remover = SelectorKind::kUniform;
  options.rng = Rng(11, Purpose::kTest);
  ReplayBuffer table(options);
  table.Insert(Rows(0, 500));
  EXPECT_EQ(table.size(), 50);
  Rng rng(10, Purpose::kTest);
  TensorMap batch;
  table.Sample(400, 1, rng, batch);
  const std::vector<int64_t> ids = Ids(batch);
  EXPECT_LT(*std::min_element(ids.begin(), ids.end()), 400);
  EXPECT_EQ(*std::max_element(ids.begin(), ids.end()), 499);
}

TEST(ReplayBuffer, TheRateLimiterHoldsTheRatioWithinItsBuffer) {
  ReplayOptions options = Options(100);
  options.limit = {.min_size = 10, .samples_per_insert = 2, .error_buffer = 8};
  ReplayBuffer table(options);
  Rng rng(11, Purpose::kTest);
  TensorMap batch;
  EXPECT_FALSE(table.Sample(4, 1, rng, batch)) << "min_size";
  ASSERT_TRUE(table.Insert(Rows(0, 10)));
  ASSERT_TRUE(table.Sample(4, 1, rng, batch));
  ASSERT_TRUE(table.Sample(4, 1, rng, batch));
  EXPECT_FALSE(table.Sample(1, 1, rng, batch)) << "8 ahead";
  // 2 samples wanted per row: from 8 ahead to 8 behind is 8 rows.
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(table.Insert(Rows(10 + i, 1)));
  EXPECT_FALSE(table.Insert(Rows(18, 1))) << "8 behind";
  EXPECT_EQ(table.inserted(), 18);
  ASSERT_TRUE(table.Sample(16, 1, rng, batch));
}

TEST(ReplayBuffer, ALoadedTableGoesOnAsTheOriginal) {
  for (const int kind : {0, 1, 2}) {
    ReplayOptions options = Options(20);
    if (kind == 1) options.sampler = SelectorKind::kPrioritised;
    if (kind == 2) {
      options.max_times_sampled = 4;
      options.remover = SelectorKind::kUniform;
    }
    ReplayBuffer original(options), loaded(options);
    Rng rng(12, Purpose::kTest);
    TensorMap batch, other;
    for (int64_t first = 0; first < 33; first += 3) {
      original.Insert(Rows(first, 3));
      ASSERT_TRUE(original.Sample(4, 1, rng, batch));
    }
    loaded.Load(original.Save());
    Rng same = rng;
    for (int64_t first = 33; first < 66; first += 3) {
      original.Insert(Rows(first, 3));
      loaded.Insert(Rows(first, 3));
      ASSERT_TRUE(original.Sample(4, 0.5, rng, batch));
      ASSERT_TRUE(loaded.Sample(4, 0.5, same, other));
      ASSERT_EQ(Hash(batch), Hash(other)) << "kind " << kind;
      original.UpdatePriorities(batch.At("index"), batch.At("key"), batch.At("weight"));
      loaded.UpdatePriorities(other.At("index"), other.At("key"), other.At("weight"));
    }
    EXPECT_EQ(Hash(original.Save()), Hash(loaded.Save()));
  }
}

TEST(ReplayBuffer, ASavedStateSharesMemoryAndDoesNotChangeAfterwards) {
  ReplayBuffer table(Options(1 << 20));
  table.Insert(Rows(0, 1000));
  const int64_t in_use = TensorAllocator().bytes_in_use;
  const TensorMap state = table.Save();
  EXPECT_LT(TensorAllocator().bytes_in_use - in_use, 1 << 20) << "the rows are not copied";
  const uint64_t hash = Hash(state);
  table.Insert(Rows(1000, 1000));
  EXPECT_EQ(Hash(state), hash) << "writing goes to memory of its own";
}

TEST(ReplayBuffer, RowsThatDoNotFitAreRefusedByName) {
  ReplayBuffer table(Options(4));
  const auto message = [&](TensorMap rows) -> std::string {
    try {
      table.Insert(rows);
    } catch (const Error& error) {
      return error.message();
    }
    return "no error";
  };
  TensorMap rows = Rows(0, 2);
  rows.Set("pixel", Tensor::Zeros({2, 3}));
  EXPECT_NE(message(rows).find("pixel"), std::string::npos);
  rows.Set("pixel", Tensor::Zeros({1, 3}, DType::kUInt8));
  EXPECT_NE(message(rows).find("pixel"), std::string::npos);
  rows.Erase("pixel");
  EXPECT_NE(message(rows).find("pixel"), std::string::npos);
  EXPECT_EQ(table.inserted(), 0);

  ReplayOptions options = Options(4);
  options.leaves.push_back({"key", {}});
  EXPECT_THROW(ReplayBuffer{options}, Error) << "a name that the table uses itself";
  options = Options(4);
  options.limit.min_size = 5;
  EXPECT_THROW(ReplayBuffer{options}, Error);
}

}  // namespace
}  // namespace weft
