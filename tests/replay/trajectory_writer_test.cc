#include "replay/trajectory_writer.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "replay/replay_buffer.h"

namespace weft {
namespace {

enum Type : uint8_t { kFirst, kMid, kLast };

TrajectoryOptions Options(int64_t rows, int64_t n_step, double gamma = 0.9) {
  return {.observation = {{"observation", {2}}, {"pixel", {5}, DType::kUInt8}},
          .carried = {{"action", {}, DType::kInt64},
                      {"row_id", {}, DType::kInt64},
                      {"episode_id", {}, DType::kInt64}},
          .rows = rows,
          .n_step = n_step,
          .gamma = gamma};
}

// One environment row as a plain list of steps.
struct PlainStep {
  int64_t serial;  // names the observation
  int64_t action, episode;
  float reward, discount;
  Type type;
};

TensorMap Chunk(const std::vector<std::vector<PlainStep>>& rows, int64_t begin, int64_t ticks) {
  const auto n = static_cast<int64_t>(rows.size());
  Tensor observation = Tensor::Empty({ticks, n, 2}),
         pixel = Tensor::Empty({ticks, n, 5}, DType::kUInt8);
  Tensor reward = Tensor::Empty({ticks, n}), discount = Tensor::Empty({ticks, n});
  Tensor type = Tensor::Empty({ticks, n}, DType::kUInt8);
  Tensor action = Tensor::Empty({ticks, n}, DType::kInt64), row_id = action.Clone(),
         episode = action.Clone();
  for (int64_t t = 0; t < ticks; ++t) {
    for (int64_t row = 0; row < n; ++row) {
      const auto i = static_cast<size_t>(t * n + row);
      const PlainStep& step = rows[static_cast<size_t>(row)][static_cast<size_t>(begin + t)];
      observation.data<float>()[2 * i] = static_cast<float>(row);
      observation.data<float>()[2 * i + 1] = static_cast<float>(step.serial);
      for (size_t k = 0; k < 5; ++k)
        pixel.data<uint8_t>()[5 * i + k] = static_cast<uint8_t>(step.serial);
      reward.data<float>()[i] = step.reward;
      discount.data<float>()[i] = step.discount;
      type.data<uint8_t>()[i] = step.type;
      action.data<int64_t>()[i] = step.action;
      row_id.data<int64_t>()[i] = row;
      episode.data<int64_t>()[i] = step.episode;
    }
  }
  TensorMap steps;
  steps.Set("observation", observation);
  steps.Set("pixel", pixel);
  steps.Set("action", action);
  steps.Set("reward", reward);
  steps.Set("discount", discount);
  steps.Set("type", type);
  steps.Set("row_id", row_id);
  steps.Set("episode_id", episode);
  return steps;
}

// Episodes of 1 to 9 steps, half of them truncated; the autoreset step's reward and action are
// rubbish on purpose.
std::vector<PlainStep> RandomRow(int64_t row, int64_t ticks) {
  Rng rng(7, Purpose::kTest, static_cast<uint64_t>(row));
  std::vector<PlainStep> steps;
  int64_t left = 0;
  for (int64_t t = 0; t < ticks; ++t) {
    const auto action = static_cast<int64_t>(rng.Below(100));
    const float reward = static_cast<float>(rng.Uniform(-1, 1));
    const int64_t episode = steps.empty() ? 0 : steps.back().episode;
    if (left == 0) {
      steps.push_back({t, action, episode + (t > 0), 1e6f, 0.5f, kFirst});
      left = 1 + static_cast<int64_t>(rng.Below(9));
      continue;
    }
    --left;
    const bool terminal = left == 0 && rng.Below(2) == 0;
    steps.push_back({t, action, episode, reward, terminal ? 0.0f : 1.0f, left == 0 ? kLast : kMid});
  }
  return steps;
}

struct PlainTransition {
  int64_t row, first, next, action, episode;
  double reward, discount;
};

// All transitions of a row whose n steps (or episode end) are known, straight from the definition.
std::vector<PlainTransition> Definition(int64_t row, const std::vector<PlainStep>& steps, int64_t n,
                                        double gamma) {
  std::vector<PlainTransition> transitions;
  for (size_t t = 1; t < steps.size(); ++t) {
    if (steps[t].type == kFirst) continue;
    PlainTransition made{row, steps[t - 1].serial, 0, steps[t].action, steps[t].episode, 0, 1};
    bool complete = false;
    for (size_t k = t; k < steps.size() && !complete; ++k) {
      made.reward += made.discount * steps[k].reward;
      made.discount *= gamma * steps[k].discount;
      made.next = steps[k].serial;
      complete = steps[k].type == kLast || static_cast<int64_t>(k - t) + 1 == n;
    }
    if (complete) transitions.push_back(made);
  }
  return transitions;
}

void ExpectRow(const TensorMap& rows, size_t i, const PlainTransition& expected) {
  EXPECT_EQ(rows.At("row_id").data<int64_t>()[i], expected.row);
  EXPECT_EQ(rows.At("episode_id").data<int64_t>()[i], expected.episode);
  EXPECT_EQ(rows.At("action").data<int64_t>()[i], expected.action);
  EXPECT_EQ(rows.At("observation").data<float>()[2 * i], static_cast<float>(expected.row));
  EXPECT_EQ(rows.At("observation").data<float>()[2 * i + 1], static_cast<float>(expected.first));
  EXPECT_EQ(rows.At("next_observation").data<float>()[2 * i], static_cast<float>(expected.row));
  EXPECT_EQ(rows.At("next_observation").data<float>()[2 * i + 1],
            static_cast<float>(expected.next));
  EXPECT_EQ(rows.At("next_pixel").data<uint8_t>()[5 * i + 4], static_cast<uint8_t>(expected.next));
  EXPECT_NEAR(rows.At("reward").data<float>()[i], expected.reward, 1e-6);
  EXPECT_NEAR(rows.At("discount").data<float>()[i], expected.discount, 1e-6);
}

TEST(TrajectoryWriter, WritesTheDefinitionInOrderOfRowAndStep) {
  constexpr int64_t kRows = 3, kTicks = 60;
  for (const int64_t n : {1, 2, 3, 5, 20}) {
    for (const int64_t chunk : {1, 4, 60}) {
      std::vector<std::vector<PlainStep>> rows;
      for (int64_t row = 0; row < kRows; ++row) rows.push_back(RandomRow(row, kTicks));
      TrajectoryWriter writer(Options(kRows, n));
      std::vector<size_t> written(kRows, 0);
      int64_t steps = 0;
      for (int64_t begin = 0; begin < kTicks; begin += chunk) {
        const TensorMap made = writer.Append(Chunk(rows, begin, chunk));
        size_t i = 0;
        for (int64_t row = 0; row < kRows; ++row) {
          auto seen = rows[static_cast<size_t>(row)];
          seen.resize(static_cast<size_t>(begin + chunk));
          const auto all = Definition(row, seen, n, 0.9);
          size_t& done = written[static_cast<size_t>(row)];
          for (; done < all.size(); ++done) ExpectRow(made, i++, all[done]);
        }
        ASSERT_EQ(made.At("reward").elements(), static_cast<int64_t>(i));
      }
      for (const auto& row : rows) {
        for (const PlainStep& step : row) steps += step.type != kFirst;
      }
      EXPECT_EQ(writer.steps(), steps);
    }
  }
}

TEST(TrajectoryWriter, TruncationBootstrapsFromTheFinalObservationAndTerminationNotAtAll) {
  // Two episodes of two steps, rewards 1 and 2, n = 3, gamma = 1/2: worked out by hand.
  const std::vector<PlainStep> row = {
      {10, 0, 0, 0, 1, kFirst}, {11, 1, 0, 1, 1, kMid}, {12, 2, 0, 2, 1, kLast},
      {20, 9, 1, 0, 1, kFirst}, {21, 3, 1, 1, 1, kMid}, {22, 4, 1, 2, 0, kLast},
  };
  TrajectoryWriter writer(Options(1, 3, 0.5));
  const TensorMap made = writer.Append(Chunk({row}, 0, 6));
  ASSERT_EQ(made.At("reward").elements(), 4);
  ExpectRow(made, 0, {0, 10, 12, 1, 0, 2.0, 0.25});
  ExpectRow(made, 1, {0, 11, 12, 2, 0, 2.0, 0.5});
  ExpectRow(made, 2, {0, 20, 22, 3, 1, 2.0, 0.0});
  ExpectRow(made, 3, {0, 21, 22, 4, 1, 2.0, 0.0});
}

TEST(TrajectoryWriter, AnAgentThatIsNotThereMakesNoTransition) {
  const std::vector<PlainStep> row = {
      {0, 0, 0, 0, 1, kLast}, {10, 0, 0, 0, 1, kFirst}, {11, 1, 0, 1, 0, kLast},
      {0, 9, 0, 0, 1, kLast}, {0, 9, 0, 0, 1, kLast},   {20, 9, 1, 0, 1, kFirst},
      {21, 3, 1, 1, 1, kMid},
  };
  TrajectoryWriter writer(Options(1, 1, 0.5));
  const TensorMap made = writer.Append(Chunk({row}, 0, 7));
  ASSERT_EQ(made.At("reward").elements(), 2);
  ExpectRow(made, 0, {0, 10, 11, 1, 0, 1.0, 0.0});
  ExpectRow(made, 1, {0, 20, 21, 3, 1, 1.0, 0.5});
  EXPECT_EQ(writer.steps(), 2);
}

TEST(TrajectoryWriter, AnEpisodeThatIsCutOffIsClosedAsTruncated) {
  const std::vector<PlainStep> row = {{10, 0, 0, 0, 1, kFirst},
                                      {11, 1, 0, 1, 1, kMid},
                                      {12, 2, 0, 2, 1, kMid},
                                      {20, 9, 1, 0, 1, kFirst}};
  TrajectoryWriter writer(Options(1, 3, 0.5));
  const TensorMap made = writer.Append(Chunk({row}, 0, 4));
  ASSERT_EQ(made.At("reward").elements(), 2);
  ExpectRow(made, 0, {0, 10, 12, 1, 0, 2.0, 0.25});
  ExpectRow(made, 1, {0, 11, 12, 2, 0, 2.0, 0.5});
}

// The same table fed both ways: every sample equal, bit for bit, also across overwriting and a
// checkpoint.
TEST(TrajectoryWriter, SharedFramesGiveTheSameBatchesAsCopies) {
  constexpr int64_t kRows = 3, kTicks = 600, kChunk = 8, kCapacity = 200;
  std::vector<std::vector<PlainStep>> rows;
  for (int64_t row = 0; row < kRows; ++row) rows.push_back(RandomRow(row, kTicks));
  for (const int64_t n : {1, 3}) {
    const TrajectoryOptions writing = Options(kRows, n);
    ReplayOptions copied, shared;
    copied.leaves = TransitionLeaves(writing, false);
    shared.leaves = TransitionLeaves(writing, true);
    shared.frames = writing.observation;
    copied.capacity = shared.capacity = kCapacity;
    ReplayBuffer copies(copied);
    auto frames = std::make_unique<ReplayBuffer>(shared);
    TrajectoryWriter to_copies(writing);
    auto to_frames = std::make_unique<TrajectoryWriter>(writing, &frames->frames());
    TensorMap a, b;
    for (int64_t begin = 0; begin < kTicks; begin += kChunk) {
      const TensorMap steps = Chunk(rows, begin, kChunk);
      copies.Insert(to_copies.Append(steps));
      frames->Insert(to_frames->Append(steps));
      ASSERT_EQ(copies.size(), frames->size());
      Rng rng(1, Purpose::kTest, static_cast<uint64_t>(begin)), same = rng;
      if (copies.size() == 0) continue;
      ASSERT_TRUE(copies.Sample(32, 1, rng, a));
      ASSERT_TRUE(frames->Sample(32, 1, same, b));
      ASSERT_EQ(a.size(), b.size());
      for (const auto& [name, tensor] : a) {
        TensorMap one, other;
        one.Set("x", tensor);
        other.Set("x", b.At(name.text()));
        ASSERT_EQ(Hash(one), Hash(other)) << name.text() << " at tick " << begin << ", n " << n;
      }
      if (begin == 160) {
        auto loaded = std::make_unique<ReplayBuffer>(shared);
        loaded->Load(frames->Save());
        auto writer = std::make_unique<TrajectoryWriter>(writing, &loaded->frames());
        writer->Load(to_frames->Save());
        frames = std::move(loaded);
        to_frames = std::move(writer);
      }
    }
    // About kCapacity * 10 / 9 frames live; a segment holds 64.
    EXPECT_LE(frames->frames().live_segments(), 6) << "frames of overwritten rows are freed";
  }
}

TEST(TrajectoryWriter, ALoadedWriterGoesOnAsTheOriginal) {
  constexpr int64_t kTicks = 40;
  std::vector<std::vector<PlainStep>> rows = {RandomRow(0, kTicks), RandomRow(1, kTicks)};
  TrajectoryWriter original(Options(2, 4)), loaded(Options(2, 4));
  for (int64_t begin = 0; begin < 15; begin += 5) original.Append(Chunk(rows, begin, 5));
  loaded.Load(original.Save());
  for (int64_t begin = 15; begin < kTicks; begin += 5) {
    EXPECT_EQ(Hash(original.Append(Chunk(rows, begin, 5))),
              Hash(loaded.Append(Chunk(rows, begin, 5))));
  }
  EXPECT_EQ(original.steps(), loaded.steps());
}

TEST(TrajectoryWriter, AHeldResultIsNotOverwritten) {
  std::vector<std::vector<PlainStep>> rows = {RandomRow(0, 40)};
  TrajectoryWriter writer(Options(1, 1));
  const TensorMap held = writer.Append(Chunk(rows, 0, 10));
  const uint64_t hash = Hash(held);
  writer.Append(Chunk(rows, 10, 10));
  EXPECT_EQ(Hash(held), hash);
  const std::byte* memory = writer.Append(Chunk(rows, 20, 10)).At("reward").raw();
  EXPECT_EQ(writer.Append(Chunk(rows, 30, 10)).At("reward").raw(), memory) << "else it is reused";
}

TEST(TrajectoryWriter, BadStreamsAreNamed) {
  const auto append = [](std::vector<PlainStep> row, ErrorCode code) -> std::string {
    TrajectoryWriter writer(Options(1, 1));
    try {
      writer.Append(Chunk({row}, 0, static_cast<int64_t>(row.size())));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      return error.message();
    }
    return "no error";
  };
  EXPECT_NE(append({{0, 0, 0, 0, 1, kMid}}, ErrorCode::kInvalidArgument).find("row 0, tick 0"),
            std::string::npos);
  EXPECT_NE(append({{0, 0, 0, 0, 1, kFirst}, {1, 0, 0, 0, 0, kLast}, {2, 0, 0, 0, 1, kMid}},
                   ErrorCode::kInvalidArgument)
                .find("row 0, tick 2"),
            std::string::npos);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(append({{0, 0, 0, 0, 1, kFirst}, {1, 0, 0, nan, 1, kMid}}, ErrorCode::kDiverged)
                .find("row 0, tick 1: reward nan"),
            std::string::npos);
}

}  // namespace
}  // namespace weft
