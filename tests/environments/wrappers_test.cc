#include "environments/wrappers.h"

#include <gtest/gtest.h>

#include "allocation_count.h"
#include "base/thread_pool.h"
#include "counter_environment.h"
#include "environments/drawing/canvas.h"
#include "environments/multi_agent_batch.h"
#include "relay_environment.h"

namespace weft {
namespace {

std::unique_ptr<BatchEnvironment> Counter(int64_t rows, bool continuous = true,
                                          bool unbounded = false, int64_t length = 3) {
  CounterEnvironment::Arguments arguments;
  arguments.continuous = continuous;
  arguments.unbounded = unbounded;
  arguments.length = length;
  return std::make_unique<BatchOf<CounterEnvironment>>(arguments, BatchOptions{.rows = rows});
}

// The action that reached row 0 of a Counter.
float ActionSeen(const TimeStep& step) {
  return step.observation.At("position").data<float>()[1];
}

Tensor Action(std::initializer_list<float> values) {
  return Tensor::From<float>({static_cast<int64_t>(values.size()), 1}, values);
}

TEST(ClipAction, ClipsToTheBoundsAndLeavesTheSpace) {
  const auto batch = ClipAction(Counter(1));
  EXPECT_EQ(batch->spec().action.ToString(), "Box(-2, 4, [1])");
  TimeStep step = batch->MakeTimeStep();
  for (const auto& [action, expected] : {std::pair{-3.0f, -2.0f}, {5.0f, 4.0f}, {1.5f, 1.5f}}) {
    batch->Reset(step);
    batch->Step(Action({action}), step);
    EXPECT_EQ(ActionSeen(step), expected);
  }
}

TEST(ScaleAction, MapsOneToTheBounds) {
  const auto batch = ScaleAction(Counter(1));
  EXPECT_EQ(batch->spec().action.ToString(), "Box(-1, 1, [1])");
  TimeStep step = batch->MakeTimeStep();
  for (const auto& [action, expected] : {std::pair{-1.0f, -2.0f}, {1.0f, 4.0f}, {0.0f, 1.0f}}) {
    batch->Reset(step);
    batch->Step(Action({action}), step);
    EXPECT_EQ(ActionSeen(step), expected);
  }
}

TEST(ScaleAction, NeedsFiniteBoundsAndRealActions) {
  EXPECT_THROW(ScaleAction(Counter(1, true, true)), ConfigProblem);
  EXPECT_THROW(ScaleAction(Counter(1, false)), ConfigProblem);
  EXPECT_THROW(ClipAction(Counter(1, false)), ConfigProblem);
}

TEST(ClipReward, ClipsStepsButNotResets) {
  const auto batch = ClipReward(Counter(1), 0.5, 2);
  TimeStep step = batch->MakeTimeStep();
  std::vector<float> rewards;
  batch->Reset(step);
  rewards.push_back(step.reward.data<float>()[0]);
  for (const float action : {3.0f, -1.0f, 1.0f, 1.0f}) {
    batch->Step(Action({action}), step);
    rewards.push_back(step.reward.data<float>()[0]);
  }
  EXPECT_EQ(rewards, (std::vector<float>{0, 2, 0.5, 1, 0}));
}

std::vector<float> Stacked(const TimeStep& step) {
  const auto data = step.observation.At("position").data<float>();
  return {data.begin(), data.end()};
}

TEST(FrameStack, StacksTheOldestFirstAndRefillsOnReset) {
  const auto batch = FrameStack(Counter(2), 3);
  EXPECT_EQ(batch->spec().leaf("position").shape, Shape({6}));
  EXPECT_EQ(batch->spec().leaf("noise").shape, Shape({3}));
  TimeStep step = batch->MakeTimeStep();
  batch->Reset(step);
  EXPECT_EQ(Stacked(step), (std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  batch->Step(Action({1, 2}), step);
  batch->Step(Action({3, 4}), step);
  EXPECT_EQ(Stacked(step), (std::vector<float>{0, 0, 1, 1, 2, 3, 0, 0, 1, 2, 2, 4}));
  batch->Step(Action({-1, -1}), step);
  EXPECT_EQ(Stacked(step), (std::vector<float>{1, 1, 2, 3, 3, -1, 1, 2, 2, 4, 3, -1}));
  batch->Step(Action({1, 1}), step);
  EXPECT_EQ(Stacked(step), (std::vector<float>(12, 0))) << "the first observation fills the stack";
}

TEST(FrameStack, SavesItsStack) {
  const auto batch = FrameStack(Counter(1, true, false, 100), 2);
  const auto other = FrameStack(Counter(1, true, false, 100), 2);
  TimeStep step = batch->MakeTimeStep(), other_step = other->MakeTimeStep();
  batch->Reset(step);
  for (int i = 0; i < 3; ++i) batch->Step(Action({static_cast<float>(i)}), step);
  other->Load(batch->Save());
  batch->Step(Action({3}), step);
  other->Step(Action({3}), other_step);
  EXPECT_EQ(Stacked(other_step), (std::vector<float>{3, 2, 4, 3}));
  EXPECT_EQ(Hash(step.observation), Hash(other_step.observation));
}

TEST(Wrappers, AllocateNothingInAStep) {
  const auto batch = ClipReward(FrameStack(ClipAction(ScaleAction(Counter(4))), 2), -1, 1);
  TimeStep step = batch->MakeTimeStep();
  const Tensor action = Action({0, 1, -1, 0.5f});
  batch->Reset(step);
  const int64_t before = AllocationCount();
  for (int i = 0; i < 20; ++i) batch->Step(action, step);
  EXPECT_EQ(AllocationCount(), before);
}

std::unique_ptr<BatchEnvironment> Registered(const std::string& id, int64_t rows) {
  const EnvironmentEntry& entry = Environments().At(id);
  return entry.make_batch(*entry.make_arguments(), {.rows = rows, .seed = 3});
}

std::vector<uint8_t> Bytes(const Tensor& tensor) {
  const auto bytes = tensor.data<uint8_t>();
  return {bytes.begin(), bytes.end()};
}

TEST(ObservePixels, ShowsWhatEachRowRenders) {
  const auto batch = ObservePixels(Registered("CartPole-v1", 2), {.width = 30, .height = 20});
  ASSERT_EQ(batch->spec().observation.size(), 1u);
  EXPECT_EQ(batch->spec().leaf("pixels").shape, (Shape{3, 20, 30}));
  EXPECT_EQ(batch->spec().leaf("pixels").dtype, DType::kUInt8);
  TimeStep step = batch->MakeTimeStep();
  batch->Reset(step);
  const Tensor left = Tensor::From<int64_t>({2}, {0, 1});
  for (int i = 0; i < 40; ++i) {  // over the ends of episodes
    for (int64_t row = 0; row < 2; ++row) {
      Picture picture(30, 20);
      Canvas canvas(picture);
      batch->Render(row, canvas);
      const auto pixels = step.observation.At("pixels").data<uint8_t>();
      for (int64_t channel = 0; channel < 3; ++channel) {
        for (int64_t y = 0; y < 20; ++y) {
          for (int64_t x = 0; x < 30; ++x) {
            ASSERT_EQ(pixels[static_cast<size_t>(((row * 3 + channel) * 20 + y) * 30 + x)],
                      picture.At(x, y)[channel]);
          }
        }
      }
    }
    batch->Step(left, step);
  }
}

TEST(ObservePixels, KeepsTheStateWhenAskedAndTheStepAlways) {
  const auto plain = Registered("CartPole-v1", 2);
  const auto batch = ObservePixels(Registered("CartPole-v1", 2), {.keep_state = true});
  ASSERT_EQ(batch->spec().observation.size(), 2u);
  TimeStep expected = plain->MakeTimeStep(), step = batch->MakeTimeStep();
  plain->Reset(expected);
  batch->Reset(step);
  const Tensor action = Tensor::From<int64_t>({2}, {0, 1});
  for (int i = 0; i < 30; ++i) {
    TensorMap leaves = step.Leaves();
    leaves.Erase("pixels");
    EXPECT_EQ(Hash(leaves), Hash(expected.Leaves()));
    plain->Step(action, expected);
    batch->Step(action, step);
  }
}

TEST(ObservePixels, DrawsTheSameOnThreads) {
  ThreadPool pool(3);
  const auto one = ObservePixels(Registered("Acrobot-v1", 7), {});
  const auto many = ObservePixels(Registered("Acrobot-v1", 7), {.pool = &pool});
  TimeStep a = one->MakeTimeStep(), b = many->MakeTimeStep();
  one->Reset(a);
  many->Reset(b);
  const Tensor action = Tensor::Full({7}, 2, DType::kInt64);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Hash(a.Leaves()), Hash(b.Leaves()));
    one->Step(action, a);
    many->Step(action, b);
  }
}

TEST(ObservePixels, GivesAllAgentsThePictureOfTheirWorld) {
  const auto batch = ObservePixels(Registered("simple_spread_v3", 2), {});
  TimeStep step = batch->MakeTimeStep();
  batch->Reset(step);
  const Tensor& pixels = step.observation.At("pixels");
  ASSERT_EQ(pixels.shape(), (Shape{6, 3, 84, 84}));
  EXPECT_EQ(Bytes(pixels.Slice(0, 1)), Bytes(pixels.Slice(2, 3)));
  EXPECT_NE(Bytes(pixels.Slice(0, 1)), Bytes(pixels.Slice(3, 4)));
}

TEST(ObservePixels, RefusesWhatDrawsNoPictures) {
  EXPECT_THROW(ObservePixels(Counter(1), {}), ConfigProblem);
}

TEST(ObservePixels, StacksItsFrames) {
  const auto batch = FrameStack(ObservePixels(Registered("Pendulum-v1", 1), {}), 4);
  EXPECT_EQ(batch->spec().leaf("pixels").shape, (Shape{12, 84, 84}));
  Picture picture(8, 8);
  Canvas canvas(picture);
  EXPECT_NO_THROW(batch->Render(0, canvas)) << "wrappers pass it on";
}

std::unique_ptr<BatchEnvironment> Sticky(double probability, const BatchOptions& options,
                                         int64_t length = 1000) {
  CounterEnvironment::Arguments arguments;
  arguments.length = length;
  return StickyActions(std::make_unique<BatchOf<CounterEnvironment>>(arguments, options),
                       probability, options);
}

// The actions of row `row` that a Counter of discrete actions saw; action t is t % 5, which it sees
// as t % 5 + 1.
std::vector<float> SeenOf(BatchEnvironment& batch, size_t row, int steps) {
  TimeStep step = batch.MakeTimeStep();
  batch.Reset(step);
  std::vector<float> seen;
  for (int t = 0; t < steps; ++t) {
    batch.Step(Tensor::Full({batch.rows()}, t % 5, DType::kInt64), step);
    seen.push_back(step.observation.At("position").data<float>()[2 * row + 1]);
  }
  return seen;
}

TEST(StickyActions, RepeatsWhatWasCarriedOutWithTheProbability) {
  constexpr int kSteps = 900;
  const auto batch = Sticky(0.25, {.rows = 4, .time_limit = 0});
  const std::vector<float> seen = SeenOf(*batch, 3, kSteps);
  EXPECT_EQ(seen[0], 1) << "nothing to repeat at the start";
  int stuck = 0;
  for (int t = 1; t < kSteps; ++t) {
    const auto i = static_cast<size_t>(t);
    const auto given = static_cast<float>(t % 5 + 1);
    EXPECT_TRUE(seen[i] == given || seen[i] == seen[i - 1]) << t;
    stuck += seen[i] != given;
  }
  // A fifth of long runs of repeats lands on the given action again, which hardly happens here:
  // p^5. Four standard deviations of 899 draws are 52.
  EXPECT_NEAR(stuck, 0.25 * 899, 52);
}

TEST(StickyActions, NeverCarriesAnActionIntoTheNextEpisode) {
  const auto batch = Sticky(0.999, {.rows = 1, .time_limit = 0}, 2);
  // Steps 3 k are first actions of episodes, 3 k + 2 are resets.
  const std::vector<float> seen = SeenOf(*batch, 0, 31);
  for (size_t t = 0; t < seen.size(); t += 3) EXPECT_EQ(seen[t], static_cast<float>(t % 5 + 1));
}

TEST(StickyActions, RowsDependOnSeedAndNumberAlone) {
  const auto all = Sticky(0.5, {.rows = 3, .seed = 4}),
             last = Sticky(0.5, {.first_row = 2, .seed = 4});
  const auto other = Sticky(0.5, {.first_row = 2, .seed = 5});
  const std::vector<float> seen = SeenOf(*all, 2, 200);
  EXPECT_EQ(seen, SeenOf(*last, 0, 200));
  EXPECT_NE(seen, SeenOf(*other, 0, 200));
}

TEST(StickyActions, GoesOnAsBeforeAfterLoad) {
  const auto batch = Sticky(0.5, {.rows = 3}, 5), copy = Sticky(0.5, {.rows = 3, .seed = 9}, 5);
  TimeStep step = batch->MakeTimeStep(), copied = copy->MakeTimeStep();
  batch->Reset(step);
  for (int t = 0; t < 30; ++t) {
    if (t == 8) copy->Load(batch->Save());
    const Tensor action = Tensor::Full({3}, t % 5, DType::kInt64);
    batch->Step(action, step);
    if (t < 8) continue;
    copy->Step(action, copied);
    EXPECT_EQ(Hash(step.Leaves()), Hash(copied.Leaves())) << t;
  }
}

TEST(StickyActions, RefusesMasks) {
  EXPECT_THROW(StickyActions(Registered("TicTacToe-v0", 1), 0.25, {}), ConfigProblem);
}

TEST(ClipObservation, ClipsRealLeavesAndTheirBounds) {
  const auto batch = ClipObservation(Counter(1, true, false, 100), -0.5, 1.5);
  EXPECT_EQ(batch->spec().leaf("position").low, std::vector<double>{-0.5});
  EXPECT_EQ(batch->spec().leaf("position").high, std::vector<double>{1.5});
  EXPECT_TRUE(batch->spec().leaf("noise").high.empty());
  TimeStep step = batch->MakeTimeStep();
  batch->Reset(step);
  EXPECT_EQ(Stacked(step), (std::vector<float>{0, 0}));
  batch->Step(Action({-2}), step);
  EXPECT_EQ(Stacked(step), (std::vector<float>{1, -0.5}));
  EXPECT_EQ(step.reward.data<float>()[0], -2);
  batch->Step(Action({4}), step);
  EXPECT_EQ(Stacked(step), (std::vector<float>{1.5, 1.5}));
}

TEST(ClipObservation, NarrowsBoundsThatThereAre) {
  const auto batch = ClipObservation(Registered("CartPole-v1", 1), -4, 10);
  const Leaf& leaf = batch->spec().observation[0];
  EXPECT_EQ(leaf.low[0], -4) << "the cart's is -4.8";
  EXPECT_EQ(leaf.high[0], 4.8);
  EXPECT_EQ(leaf.high[1], 10) << "speed had none";
}

TEST(Flatten, JoinsRealNumbersAndBytesInOrder) {
  const auto batch = Flatten(Counter(2, true, false, 100));
  ASSERT_EQ(batch->spec().observation.size(), 1u);
  const Leaf& leaf = batch->spec().leaf("observation");
  EXPECT_EQ(leaf.shape, Shape({3}));
  EXPECT_EQ(leaf.elements, (std::vector<std::string>{"position[0]", "position[1]", "noise"}));
  EXPECT_EQ(leaf.high[2], std::numeric_limits<double>::infinity());
  const auto plain = Counter(2, true, false, 100);
  TimeStep step = batch->MakeTimeStep(), parts = plain->MakeTimeStep();
  batch->Reset(step);
  plain->Reset(parts);
  batch->Step(Action({3, 4}), step);
  plain->Step(Action({3, 4}), parts);
  const auto noise = parts.observation.At("noise").data<uint8_t>();
  const auto joined = step.observation.At("observation").data<float>();
  EXPECT_EQ((std::vector<float>{joined.begin(), joined.end()}),
            (std::vector<float>{1, 3, float(noise[0]), 1, 4, float(noise[1])}));
  EXPECT_EQ(Hash(TensorMap(plain->Save())), Hash(batch->Save()));
}

TEST(Flatten, LeavesIntegersAndMasksAlone) {
  const auto grid = Flatten(Registered("MiniGrid-Empty-5x5-v0", 2));
  const auto plain = Registered("MiniGrid-Empty-5x5-v0", 2);
  ASSERT_EQ(grid->spec().observation.size(), 2u);
  EXPECT_EQ(grid->spec().observation[0].name, "observation");
  EXPECT_EQ(grid->spec().observation[0].shape, Shape({147}));
  EXPECT_EQ(grid->spec().observation[1].name, "direction");
  TimeStep step = grid->MakeTimeStep(), parts = plain->MakeTimeStep();
  grid->Reset(step);
  plain->Reset(parts);
  EXPECT_EQ(step.observation.At("direction").data<int64_t>()[1],
            parts.observation.At("direction").data<int64_t>()[1]);
  const auto joined = step.observation.At("observation").data<float>();
  const auto image = parts.observation.entry(0).second.data<uint8_t>();
  EXPECT_TRUE(std::ranges::equal(joined, image));
  EXPECT_THROW(Flatten(Registered("Taxi-v4", 1)), ConfigProblem);
}

TEST(AgentId, MarksTheRowsOfEachAgentAndNotOfAbsentOnes) {
  const auto make = [] {
    return AgentId(std::make_unique<MultiAgentBatch>(
        [] { return std::make_unique<RelayEnvironment>(RelayEnvironment::Arguments{}); },
        BatchOptions{.rows = 2}, RelayEnvironment::kStepNanoseconds));
  };
  const auto batch = make(), copy = make();
  EXPECT_EQ(batch->spec().observation.back().shape, Shape({3}));
  TimeStep step = batch->MakeTimeStep(), copied = copy->MakeTimeStep();
  const auto ids = [&] {
    const auto data = step.observation.At("agent_id").data<float>();
    return std::vector<float>{data.begin(), data.begin() + 9};
  };
  batch->Reset(step);
  EXPECT_EQ(ids(), (std::vector<float>{1, 0, 0, 0, 1, 0, 0, 0, 0})) << "the third comes later";
  const Tensor action = Tensor::From<int64_t>({6}, {1, 2, 1, 1, 2, 1});
  batch->Step(action, step);
  EXPECT_EQ(ids(), (std::vector<float>{1, 0, 0, 0, 1, 0, 0, 0, 1}));
  batch->Step(action, step);
  EXPECT_EQ(ids(), (std::vector<float>{1, 0, 0, 0, 1, 0, 0, 0, 1})) << "its last step";
  copy->Load(batch->Save());
  batch->Step(action, step);
  EXPECT_EQ(ids(), (std::vector<float>{0, 0, 0, 0, 1, 0, 0, 0, 1})) << "it has left";
  copy->Step(action, copied);
  EXPECT_EQ(Hash(step.Leaves()), Hash(copied.Leaves()));
  EXPECT_THROW(AgentId(Counter(1)), ConfigProblem);
}

TEST(Wrappers, OfAllKindsAllocateNothingInAStep) {
  const BatchOptions options{.rows = 4};
  const auto batch = ShapeReward(ClipObservation(Flatten(Sticky(0.5, options, 5)), -5, 5),
                                 {.potential = {1, 1, 0}});
  TimeStep step = batch->MakeTimeStep();
  const Tensor action = Tensor::Full({4}, 2, DType::kInt64);
  batch->Reset(step);
  for (int i = 0; i < 8; ++i) batch->Step(action, step);
  const int64_t before = AllocationCount();
  for (int i = 0; i < 20; ++i) batch->Step(action, step);
  EXPECT_EQ(AllocationCount(), before);
}

}  // namespace
}  // namespace weft
