#include "actors/episode_statistics.h"

#include <gtest/gtest.h>

#include "environments/environment.h"

namespace weft {
namespace {

constexpr auto kFirst = static_cast<uint8_t>(StepType::kFirst);
constexpr auto kMid = static_cast<uint8_t>(StepType::kMid);
constexpr auto kLast = static_cast<uint8_t>(StepType::kLast);

TensorMap StepOf(std::initializer_list<float> reward, std::initializer_list<uint8_t> type) {
  TensorMap step;
  step.Set("reward", Tensor::From<float>({static_cast<int64_t>(reward.size())}, reward));
  step.Set("type", Tensor::From<uint8_t>({static_cast<int64_t>(type.size())}, type));
  return step;
}

// Two rows of different episode lengths, with the autoreset step between episodes.
TEST(EpisodeStatistics, CountsEveryStepOfEveryEpisodeAndNoReset) {
  EpisodeStatistics statistics(2);
  statistics.Observe(StepOf({0, 0}, {kFirst, kFirst}));
  statistics.Observe(StepOf({1, 10}, {kMid, kMid}));
  statistics.Observe(StepOf({2, 20}, {kLast, kMid}));
  statistics.Observe(StepOf({0, 30}, {kFirst, kLast}));
  statistics.Observe(StepOf({4, 0}, {kMid, kFirst}));
  statistics.Observe(StepOf({8, 50}, {kLast, kMid}));
  ASSERT_EQ(statistics.ended().size(), 3u);
  const double returns[] = {3, 60, 12};
  const int64_t lengths[] = {2, 3, 2}, rows[] = {0, 1, 0};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(statistics.ended()[i].episode_return, returns[i]);
    EXPECT_EQ(statistics.ended()[i].length, lengths[i]);
    EXPECT_EQ(statistics.ended()[i].environment, rows[i]);
  }
}

// Agent 0 leaves early, agent 1 comes late, their environment ends with agent 1.
TEST(EpisodeStatistics, AddsUpTheAgentsOfAnEnvironmentWhileTheyAreThere) {
  EpisodeStatistics statistics(4, 2);
  statistics.Observe(StepOf({0, 0, 0, 0}, {kFirst, kLast, kFirst, kFirst}));
  statistics.Observe(StepOf({1, 0, 5, 5}, {kMid, kFirst, kMid, kMid}));
  statistics.Observe(StepOf({1, 10, 5, 5}, {kLast, kMid, kMid, kMid}));
  EXPECT_TRUE(statistics.ended().empty());
  statistics.Observe(StepOf({99, 10, 5, 5}, {kLast, kLast, kMid, kMid}));
  statistics.Observe(StepOf({0, 99, 5, 5}, {kFirst, kLast, kLast, kLast}));
  ASSERT_EQ(statistics.ended().size(), 2u);
  EXPECT_EQ(statistics.ended()[0].environment, 0);
  EXPECT_EQ(statistics.ended()[0].episode_return, 22);
  EXPECT_EQ(statistics.ended()[0].length, 3);
  EXPECT_EQ(statistics.ended()[0].agent_returns, (std::vector<double>{2, 20}));
  EXPECT_EQ(statistics.ended()[1].environment, 1);
  EXPECT_EQ(statistics.ended()[1].episode_return, 40);
  statistics.Observe(StepOf({7, 0, 0, 0}, {kLast, kLast, kFirst, kFirst}));
  ASSERT_EQ(statistics.ended().size(), 3u);
  EXPECT_EQ(statistics.ended()[2].episode_return, 7);
}

TEST(EpisodeStatistics, AnEpisodeThatIsCutOffByAResetCountsForNothing) {
  EpisodeStatistics statistics(1);
  statistics.Observe(StepOf({0}, {kFirst}));
  statistics.Observe(StepOf({5}, {kMid}));
  statistics.Observe(StepOf({0}, {kFirst}));
  statistics.Observe(StepOf({1}, {kLast}));
  ASSERT_EQ(statistics.ended().size(), 1u);
  EXPECT_EQ(statistics.ended()[0].episode_return, 1);
}

TEST(EpisodeStatistics, GoesOnAfterSaveAndLoad) {
  EpisodeStatistics first(1), second(1);
  first.Observe(StepOf({0}, {kFirst}));
  first.Observe(StepOf({5}, {kMid}));
  second.Load(first.Save());
  second.Observe(StepOf({2}, {kLast}));
  ASSERT_EQ(second.ended().size(), 1u);
  EXPECT_EQ(second.ended()[0].episode_return, 7);
  EXPECT_EQ(second.ended()[0].length, 2);
}

}  // namespace
}  // namespace weft
