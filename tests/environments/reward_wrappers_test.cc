#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "counter_environment.h"
#include "environments/multi_agent_batch.h"
#include "environments/wrappers.h"
#include "relay_environment.h"

namespace weft {
namespace {

using testing::ElementsAre;

std::unique_ptr<BatchEnvironment> Counter(int64_t rows, int64_t length = 3) {
  CounterEnvironment::Arguments arguments;
  arguments.continuous = true;
  arguments.length = length;
  return std::make_unique<BatchOf<CounterEnvironment>>(arguments, BatchOptions{.rows = rows});
}

std::unique_ptr<BatchEnvironment> Relays(int64_t rows = 1) {
  return std::make_unique<MultiAgentBatch>(
      [] { return std::make_unique<RelayEnvironment>(RelayEnvironment::Arguments{}); },
      BatchOptions{.rows = rows}, RelayEnvironment::kStepNanoseconds);
}

// Rewards of row 0 of a Counter, which are its actions, from the reset on.
std::vector<float> Rewards(BatchEnvironment& batch, const std::vector<float>& actions) {
  TimeStep step = batch.MakeTimeStep();
  batch.Reset(step);
  std::vector<float> rewards = {step.reward.data<float>()[0]};
  for (const float action : actions) {
    batch.Step(Tensor::From<float>({1, 1}, {action}), step);
    rewards.push_back(step.reward.data<float>()[0]);
  }
  return rewards;
}

TEST(ShapeReward, ScalesThenShiftsStepsAlone) {
  const auto batch = ShapeReward(Counter(1), {.scale = 10, .shift = -1});
  EXPECT_THAT(Rewards(*batch, {0.5f, 1, 2, 3, 1}), ElementsAre(0, 4, 9, 19, 0, 9));
}

TEST(ShapeReward, AddsWhatThePotentialGains) {
  // The observation is (steps, action), so Phi = 2 * steps: 0, 2, 4, and 0 at the terminal state.
  const auto batch = ShapeReward(Counter(1), {.potential = {2, 0}, .gamma = 0.5});
  EXPECT_THAT(Rewards(*batch, {1, 1, 1, 1, 1}),
              ElementsAre(0, 1 + 0.5 * 2 - 0, 1 + 0.5 * 4 - 2, 1 + 0 - 4, 0, 1 + 0.5 * 2 - 0));
}

TEST(ShapeReward, KeepsThePotentialWhereAnEpisodeIsCutOff) {
  CounterEnvironment::Arguments arguments;
  arguments.continuous = true;
  arguments.length = 100;
  const auto batch = ShapeReward(
      std::make_unique<BatchOf<CounterEnvironment>>(arguments, BatchOptions{.time_limit = 2}),
      {.potential = {2, 0}, .gamma = 0.5});
  EXPECT_THAT(Rewards(*batch, {1, 1}), ElementsAre(0, 2, 1 + 0.5 * 4 - 2));
}

TEST(ShapeReward, GoesOnAsBeforeAfterLoad) {
  const RewardShaping shaping{.scale = 2, .potential = {1, 0.25}, .gamma = 0.9};
  const auto batch = ShapeReward(Counter(1, 100), shaping);
  Rewards(*batch, {1, 2});
  const auto other = ShapeReward(Counter(1, 100), shaping);
  TimeStep step = batch->MakeTimeStep(), other_step = other->MakeTimeStep();
  other->Load(batch->Save());
  for (const float action : {0.5f, -1.0f, 3.0f}) {
    batch->Step(Tensor::From<float>({1, 1}, {action}), step);
    other->Step(Tensor::From<float>({1, 1}, {action}), other_step);
    EXPECT_EQ(Hash(step.Leaves()), Hash(other_step.Leaves()));
  }
}

TEST(ShapeReward, WantsAWeightForEachElement) {
  EXPECT_THROW(ShapeReward(Counter(1), {.potential = {1, 2, 3}}), ConfigProblem);
}

// Agent 2 comes at step 1, agent 0 leaves at step 2, agent 1 at step 3: relay_environment.h.
// Rewards are the actions.
TEST(ShareReward, GivesTheTeamItsMeanOrSum) {
  for (const bool mean : {true, false}) {
    const auto batch = ShareReward(Relays(), mean);
    TimeStep out = batch->MakeTimeStep();
    const auto reward = out.reward.data<float>();
    batch->Reset(out);
    batch->Step(Tensor::From<int64_t>({3}, {1, 2, 0}), out);
    EXPECT_THAT(reward, ElementsAre(mean ? 1.5 : 3, mean ? 1.5 : 3, 0));
    batch->Step(Tensor::From<int64_t>({3}, {1, 2, 0}), out);
    EXPECT_THAT(reward, ElementsAre(mean ? 1 : 3, mean ? 1 : 3, mean ? 1 : 3));
    batch->Step(Tensor::From<int64_t>({3}, {1, 2, 1}), out);
    EXPECT_THAT(reward, ElementsAre(0, mean ? 1.5 : 3, mean ? 1.5 : 3)) << "one has left";
  }
}

TEST(ShareReward, GoesOnAsBeforeAfterLoad) {
  const auto batch = ShareReward(Relays(2), true), other = ShareReward(Relays(2), true);
  TimeStep out = batch->MakeTimeStep(), other_out = other->MakeTimeStep();
  batch->Reset(out);
  const Tensor action = Tensor::From<int64_t>({6}, {1, 2, 1, 1, 2, 0});
  for (int i = 0; i < 2; ++i) batch->Step(action, out);
  other->Load(batch->Save());
  for (int i = 0; i < 6; ++i) {
    batch->Step(action, out);
    other->Step(action, other_out);
    EXPECT_EQ(Hash(out.Leaves()), Hash(other_out.Leaves())) << i;
  }
}

TEST(ShareReward, NeedsSeveralAgents) {
  EXPECT_THROW(ShareReward(Counter(1), true), ConfigProblem);
}

TEST(RewardWrappers, LeaveAbsentAgentsAtZero) {
  for (const bool clip : {true, false}) {
    const auto batch =
        clip ? ClipReward(Relays(), 1.5, 4) : ShapeReward(Relays(), {.scale = 1, .shift = 7});
    TimeStep out = batch->MakeTimeStep();
    batch->Reset(out);
    batch->Step(Tensor::From<int64_t>({3}, {1, 2, 0}), out);
    EXPECT_EQ(out.reward.data<float>()[0], clip ? 1.5f : 8.0f);
    EXPECT_EQ(out.reward.data<float>()[2], 0) << "it comes";
    batch->Step(Tensor::From<int64_t>({3}, {1, 2, 1}), out);
    batch->Step(Tensor::From<int64_t>({3}, {1, 1, 1}), out);
    EXPECT_EQ(out.reward.data<float>()[0], 0) << "it has left";
  }
}

}  // namespace
}  // namespace weft
