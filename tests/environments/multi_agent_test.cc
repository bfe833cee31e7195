#include "environments/multi_agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "allocation_count.h"
#include "base/thread_pool.h"
#include "environments/multi_agent_batch.h"
#include "environments/verify/conformance.h"
#include "relay_environment.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint8_t kFirst = 0, kMid = 1, kLast = 2;

MultiAgentBatch Relays(const BatchOptions& options) {
  return MultiAgentBatch(
      [] { return std::make_unique<RelayEnvironment>(RelayEnvironment::Arguments{}); }, options,
      RelayEnvironment::kStepNanoseconds);
}

Tensor Actions(const std::vector<int64_t>& actions) {
  return Tensor::From<int64_t>({std::ssize(actions)}, actions);
}

std::string MessageOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(MultiAgentBatch, HasARowForEachAgentOfEachEnvironment) {
  MultiAgentBatch batch = Relays({.rows = 2});
  EXPECT_EQ(batch.rows(), 6);
  TimeStep out = batch.MakeTimeStep();
  batch.Reset(out);
  EXPECT_EQ(out.observation.At("observation").shape(), Shape({6, 2}));
  // Of each environment: step 0, the number of the agent; the third comes later.
  EXPECT_THAT(out.observation.At("observation").data<float>(),
              ElementsAre(0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0));
  EXPECT_THAT(out.type.data<uint8_t>(), ElementsAre(kFirst, kFirst, kLast, kFirst, kFirst, kLast));
  EXPECT_THAT(out.episode_id.data<int64_t>(), ElementsAre(0, 0, 0, 0, 0, 0));
}

// Relays whose observations are 1 more, and must lie between 1 and 3.
class BoundedRelay final : public MultiAgentEnvironment {
 public:
  BoundedRelay() : relay_({}), spec_(relay_.spec()) {
    spec_.observation[0].low = {1};
    spec_.observation[0].high = {3};
  }
  const EnvironmentSpec& spec() const override { return spec_; }
  void Reset(Rng& rng, AgentRows out) override {
    relay_.Reset(rng, out);
    Raise(out);
  }
  void Step(AgentActions actions, Rng& rng, AgentRows out) override {
    relay_.Step(actions, rng, out);
    Raise(out);
  }
  void GetState(std::vector<double>& state) const override { relay_.GetState(state); }
  void SetState(std::span<const double> state) override { relay_.SetState(state); }
  void Observe(AgentRows out) override {
    relay_.Observe(out);
    Raise(out);
  }

 private:
  static void Raise(AgentRows out) {
    for (int64_t agent = 0; agent < 3; ++agent) {
      for (size_t i = 0; i < 2; ++i) ++out.Leaf<float>(agent)[i];
    }
  }

  RelayEnvironment relay_;
  EnvironmentSpec spec_;
};

TEST(MultiAgentBatch, ChecksTheBoundsOfAgentsThatAreThere) {
  MultiAgentBatch batch([] { return std::make_unique<BoundedRelay>(); }, {.rows = 2}, 1e6);
  TimeStep out = batch.MakeTimeStep();
  batch.Reset(out);  // the third is absent and observes zeros
  const Tensor action = Actions({1, 1, 1, 1, 1, 1});
  batch.Step(action, out);
  batch.Step(action, out);
  EXPECT_THAT(MessageOf([&] { batch.Step(action, out); }),
              testing::AllOf(HasSubstr("row 1 (runner_1 of environment 0"),
                             HasSubstr("step 3: observation[0] is 4, outside its bounds 1 .. 3")));
}

TEST(MultiAgentBatch, AgentsComeAndLeaveAndTheLastOneEndsTheEpisode) {
  MultiAgentBatch batch = Relays({});
  TimeStep out = batch.MakeTimeStep();
  batch.Reset(out);
  const auto type = out.type.data<uint8_t>();
  const auto reward = out.reward.data<float>(), discount = out.discount.data<float>();
  batch.Step(Actions({1, 2, 0}), out);  // agent 2 comes
  EXPECT_THAT(type, ElementsAre(kMid, kMid, kFirst));
  EXPECT_THAT(reward, ElementsAre(1, 2, 0));
  batch.Step(Actions({1, 2, 1}), out);  // agent 0 leaves
  EXPECT_THAT(type, ElementsAre(kLast, kMid, kMid));
  EXPECT_THAT(reward, ElementsAre(1, 2, 1));
  EXPECT_THAT(discount, ElementsAre(0, 1, 1));
  batch.Step(Actions({-77, 1, 1}), out);  // its action is ignored; agent 1 leaves, cut off
  EXPECT_THAT(type, ElementsAre(kLast, kLast, kMid));
  EXPECT_THAT(reward, ElementsAre(0, 1, 1));
  EXPECT_THAT(discount, ElementsAre(1, 1, 1));
  EXPECT_THAT(out.observation.At("observation").data<float>().first(2), ElementsAre(0, 0));
  batch.Step(Actions({0, 0, 0}), out);
  EXPECT_THAT(type, ElementsAre(kLast, kLast, kLast));
  EXPECT_THAT(discount, ElementsAre(1, 1, 0));
  EXPECT_THAT(out.episode_id.data<int64_t>(), ElementsAre(0, 0, 0));
  batch.Step(Actions({-5, -5, -5}), out);  // the next step resets
  EXPECT_THAT(type, ElementsAre(kFirst, kFirst, kLast));
  EXPECT_THAT(reward, ElementsAre(0, 0, 0));
  EXPECT_THAT(out.episode_id.data<int64_t>(), ElementsAre(1, 1, 1));
}

TEST(MultiAgentBatch, MasksAllowEachAgentItsOwnActions) {
  MultiAgentBatch batch = Relays({});
  TimeStep out = batch.MakeTimeStep();
  batch.Reset(out);
  // The third is absent: its action is ignored, all are allowed.
  EXPECT_THAT(out.observation.At("action_mask").data<uint8_t>(),
              ElementsAre(1, 1, 0, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(MessageOf([&] {
                batch.Step(Actions({2, 0, 0}), out);
              }),
              AllOf(HasSubstr("action of runner_0, which has Discrete(2)"),
                    HasSubstr("Relay-v0, row 0 (runner_0 of environment 0")));
}

TEST(MultiAgentBatch, ATimeLimitTruncatesThoseWhoAreThere) {
  MultiAgentBatch batch = Relays({.time_limit = 3});
  TimeStep out = batch.MakeTimeStep();
  batch.Reset(out);
  for (int t = 0; t < 3; ++t) batch.Step(Actions({1, 1, 1}), out);
  EXPECT_THAT(out.type.data<uint8_t>(), ElementsAre(kLast, kLast, kLast));
  EXPECT_THAT(out.discount.data<float>(), ElementsAre(1, 1, 1));
  EXPECT_THAT(out.reward.data<float>(), ElementsAre(0, 1, 1));
}

TEST(MultiAgentBatch, HoldsActionsAndKeepsWhatAnAgentGotBeforeItLeft) {
  MultiAgentBatch batch = Relays({.action_repeat = 3});
  TimeStep out = batch.MakeTimeStep();
  batch.Reset(out);
  batch.Step(Actions({1, 2, 1}), out);
  EXPECT_THAT(out.reward.data<float>(), ElementsAre(2, 6, 2));
  EXPECT_THAT(out.type.data<uint8_t>(), ElementsAre(kLast, kLast, kMid));
  EXPECT_THAT(out.discount.data<float>(), ElementsAre(0, 1, 1));
}

TEST(MultiAgentBatch, IsTheSameInTwoHalvesAndOnAnyNumberOfThreads) {
  const auto run = [](BatchOptions options, std::vector<float>& seen) {
    options.seed = 5;
    MultiAgentBatch batch = Relays(options);
    TimeStep out = batch.MakeTimeStep();
    batch.Reset(out);
    for (int t = 0; t < 20; ++t) {
      batch.Step(Tensor::Zeros({batch.rows()}, DType::kInt64), out);
      const auto noise = out.observation.At("noise").data<float>();
      seen.insert(seen.end(), noise.begin(), noise.end());
    }
  };
  ThreadPool pool(3);
  std::vector<float> whole, threads, first, second, halves;
  run({.rows = 4}, whole);
  run({.rows = 4, .pool = &pool}, threads);
  run({.rows = 2}, first);
  run({.rows = 2, .first_row = 2}, second);
  for (size_t at = 0; at < first.size(); at += 6) {
    halves.insert(halves.end(), first.begin() + at, first.begin() + at + 6);
    halves.insert(halves.end(), second.begin() + at, second.begin() + at + 6);
  }
  EXPECT_EQ(threads, whole);
  EXPECT_EQ(halves, whole);
}

TEST(MultiAgentBatch, RefusesTheStateOfAnotherBatch) {
  MultiAgentBatch two = Relays({.rows = 2}), one = Relays({});
  TimeStep out = one.MakeTimeStep();
  one.Reset(out);
  EXPECT_THROW(two.Load(one.Save()), Error);
}

TEST(CheckConformance, HoldsForAnEnvironmentWhoseAgentsComeAndLeave) {
  Environments().Add("Relay-v0", MakeMultiAgentEntry<RelayEnvironment>("a relay"));
  for (const ConformanceCheck& check : CheckConformance("Relay-v0", AllocationCount))
    EXPECT_EQ(check.problem, "") << check.claim;
}

}  // namespace
}  // namespace weft
