#include "environments/batch_of.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "allocation_count.h"
#include "counter_environment.h"

namespace weft {
namespace {

using Arguments = CounterEnvironment::Arguments;
using Batch = BatchOf<CounterEnvironment>;
constexpr auto kFirst = static_cast<uint8_t>(StepType::kFirst);
constexpr auto kMid = static_cast<uint8_t>(StepType::kMid);
constexpr auto kLast = static_cast<uint8_t>(StepType::kLast);

Tensor Actions(int64_t rows, int64_t action) {
  return Tensor::Full({rows}, static_cast<double>(action), DType::kInt64);
}

template <class T>
std::vector<T> Values(const Tensor& tensor) {
  const auto data = tensor.data<T>();
  return {data.begin(), data.end()};
}

TEST(BatchOf, ResetsARowOnTheStepAfterItsLast) {
  Batch batch(Arguments{}, {.rows = 1});
  TimeStep step = batch.MakeTimeStep();
  batch.Reset(step);
  std::vector<uint8_t> types = Values<uint8_t>(step.type);
  std::vector<float> rewards, discounts;
  std::vector<int64_t> episodes = Values<int64_t>(step.episode_id);
  for (int i = 0; i < 5; ++i) {
    batch.Step(Actions(1, 2), step);
    types.push_back(step.type.data<uint8_t>()[0]);
    rewards.push_back(step.reward.data<float>()[0]);
    discounts.push_back(step.discount.data<float>()[0]);
    episodes.push_back(step.episode_id.data<int64_t>()[0]);
  }
  EXPECT_EQ(types, (std::vector<uint8_t>{kFirst, kMid, kMid, kLast, kFirst, kMid}));
  EXPECT_EQ(rewards, (std::vector<float>{3, 3, 3, 0, 3}));  // index 2 of a space that starts at 1
  EXPECT_EQ(discounts, (std::vector<float>{1, 1, 0, 1, 1}));
  EXPECT_EQ(episodes, (std::vector<int64_t>{0, 0, 0, 0, 1, 1}));
}

TEST(BatchOf, TruncatesAtTheTimeLimitWithDiscountOne) {
  Arguments arguments;
  arguments.length = 100;
  for (const int64_t limit : {int64_t{4}, int64_t{-1}}) {
    Batch batch(arguments, {.rows = 1, .time_limit = limit});
    const int64_t expected = limit == -1 ? 10 : limit;  // -1: the spec's
    EXPECT_EQ(batch.spec().time_limit, expected);
    TimeStep step = batch.MakeTimeStep();
    batch.Reset(step);
    for (int64_t i = 1; i <= expected; ++i) {
      batch.Step(Actions(1, 0), step);
      EXPECT_EQ(step.type.data<uint8_t>()[0], i == expected ? kLast : kMid) << i;
      EXPECT_EQ(step.discount.data<float>()[0], 1);
    }
  }
}

TEST(BatchOf, ATerminalStepAtTheTimeLimitIsTerminal) {
  Batch batch(Arguments{}, {.rows = 1, .time_limit = 3});
  TimeStep step = batch.MakeTimeStep();
  batch.Reset(step);
  for (int i = 0; i < 3; ++i) batch.Step(Actions(1, 0), step);
  EXPECT_EQ(step.type.data<uint8_t>()[0], kLast);
  EXPECT_EQ(step.discount.data<float>()[0], 0);
}

TEST(BatchOf, LimitZeroMeansNone) {
  Arguments arguments;
  arguments.length = 1000;
  Batch batch(arguments, {.rows = 1, .time_limit = 0});
  TimeStep step = batch.MakeTimeStep();
  batch.Reset(step);
  for (int i = 0; i < 999; ++i) {
    batch.Step(Actions(1, 0), step);
    ASSERT_EQ(step.type.data<uint8_t>()[0], kMid);
  }
}

TEST(BatchOf, HoldsAnActionAndAddsItsRewardsUntilTheEnd) {
  Batch batch(Arguments{}, {.rows = 1, .action_repeat = 2});
  TimeStep step = batch.MakeTimeStep();
  batch.Reset(step);
  batch.Step(Actions(1, 0), step);
  EXPECT_EQ(step.reward.data<float>()[0], 2);
  batch.Step(Actions(1, 0), step);
  EXPECT_EQ(step.reward.data<float>()[0], 1) << "the third step ends the episode of three";
  EXPECT_EQ(step.type.data<uint8_t>()[0], kLast);
}

TEST(BatchOf, RoundsF64ObservationsToF32AndKeepsIntegers) {
  Arguments arguments;
  arguments.continuous = true;
  Batch batch(arguments, {.rows = 2});
  TimeStep step = batch.MakeTimeStep();
  EXPECT_EQ(step.observation.At("position").dtype(), DType::kFloat32);
  EXPECT_EQ(step.observation.At("noise").dtype(), DType::kUInt8);
  EXPECT_EQ(step.observation.At("noise").shape(), Shape({2}));
  batch.Reset(step);
  batch.Step(Tensor::From<float>({2, 1}, {0.1f, -0.7f}), step);
  EXPECT_EQ(Values<float>(step.observation.At("position")),
            (std::vector<float>{1, 0.1f, 1, -0.7f}));
  batch.Step(Tensor::From<double>({2, 1}, {0.25, 0.5}), step);
  EXPECT_EQ(Values<float>(step.observation.At("position")),
            (std::vector<float>{2, 0.25f, 2, 0.5f}));
}

// Noise of rows of `steps` steps, row by row.
std::vector<std::vector<uint8_t>> Noise(const BatchOptions& options, int steps) {
  Batch batch(Arguments{}, options);
  TimeStep step = batch.MakeTimeStep();
  std::vector<std::vector<uint8_t>> noise(static_cast<size_t>(options.rows));
  batch.Reset(step);
  for (int i = 0; i < steps; ++i) {
    for (size_t row = 0; row < noise.size(); ++row) {
      noise[row].push_back(step.observation.At("noise").data<uint8_t>()[row]);
    }
    batch.Step(Actions(options.rows, 0), step);
  }
  return noise;
}

TEST(BatchOf, KeysRandomnessByGlobalRowWhateverTheSplit) {
  const auto whole = Noise({.rows = 6, .seed = 5}, 20);
  const auto part = Noise({.rows = 2, .first_row = 3, .seed = 5}, 20);
  EXPECT_EQ(part[0], whole[3]);
  EXPECT_EQ(part[1], whole[4]);
  EXPECT_NE(whole[0], whole[1]);
  EXPECT_NE(Noise({.rows = 1, .seed = 6}, 20)[0], whole[0]);
  EXPECT_NE(Noise({.rows = 1, .seed = 5, .purpose = Purpose::kEvaluation}, 20)[0], whole[0]);
}

TEST(BatchOf, StepsTheSameOnAnyNumberOfThreads) {
  ThreadPool two(2), three(3);
  const auto alone = Noise({.rows = 7, .seed = 5}, 20);
  EXPECT_EQ(Noise({.rows = 7, .seed = 5, .pool = &two}, 20), alone);
  EXPECT_EQ(Noise({.rows = 7, .seed = 5, .pool = &three}, 20), alone);
}

TEST(BatchOf, AllocatesNothingInAStep) {
  for (const int threads : {1, 2}) {
    ThreadPool pool(threads);
    Batch batch(Arguments{}, {.rows = 8, .pool = &pool});
    TimeStep step = batch.MakeTimeStep();
    const Tensor action = Actions(8, 1);
    batch.Reset(step);
    batch.Step(action, step);
    const int64_t before = AllocationCount();
    for (int i = 0; i < 100; ++i) batch.Step(action, step);
    EXPECT_EQ(AllocationCount(), before) << threads << " threads";
  }
}

TEST(BatchOf, LoadContinuesBitForBit) {
  Batch batch(Arguments{}, {.rows = 3, .seed = 2});
  TimeStep step = batch.MakeTimeStep();
  batch.Reset(step);
  for (int i = 0; i < 5; ++i) batch.Step(Actions(3, i % 5), step);
  const TensorMap state = batch.Save();
  Batch other(Arguments{}, {.rows = 3, .seed = 99});
  other.Load(state);
  TimeStep other_step = other.MakeTimeStep();
  for (int i = 0; i < 20; ++i) {
    batch.Step(Actions(3, i % 5), step);
    other.Step(Actions(3, i % 5), other_step);
    EXPECT_EQ(Hash(step.observation), Hash(other_step.observation));
    EXPECT_EQ(Values<int64_t>(step.episode_id), Values<int64_t>(other_step.episode_id));
    EXPECT_EQ(Values<uint8_t>(step.type), Values<uint8_t>(other_step.type));
  }
}

TEST(BatchOf, RefusesTheStateOfAnotherBatch) {
  Batch batch(Arguments{}, {.rows = 3});
  Batch other(Arguments{}, {.rows = 2});
  TimeStep step = batch.MakeTimeStep();
  batch.Reset(step);
  EXPECT_THROW(other.Load(batch.Save()), Error);
  TensorMap cut = batch.Save();
  cut.Set("rows", cut.At("rows").Slice(0, cut.At("rows").dim(0) - 1));
  EXPECT_THROW(batch.Load(cut), Error);
}

// The error that steps of this batch end in; empty code when none.
Error StepError(const Arguments& arguments, const BatchOptions& options, const Tensor& action,
                int steps) {
  Batch batch(arguments, options);
  TimeStep step = batch.MakeTimeStep();
  batch.Reset(step);
  try {
    for (int i = 0; i < steps; ++i) batch.Step(action, step);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::kInternal, "nothing was thrown");
}

TEST(BatchOf, ErrorsNameEnvironmentRowSeedAndStep) {
  Arguments arguments;
  arguments.fail_at = 2;
  const Error error =
      StepError(arguments, {.rows = 2, .first_row = 4, .seed = 9}, Actions(2, 0), 2);
  EXPECT_EQ(error.message(), "Counter-v0, row 4 (seed 9), step 2: the cable broke");
}

TEST(BatchOf, ObservationsThatAreNotFiniteAreDivergence) {
  Arguments arguments;
  arguments.nan_at = 2;
  const Error error = StepError(arguments, {.rows = 1, .seed = 9}, Actions(1, 0), 2);
  EXPECT_EQ(error.code(), ErrorCode::kDiverged);
  EXPECT_EQ(error.message(), "Counter-v0, row 0 (seed 9), step 2: position[1] is not finite");
}

TEST(BatchOf, RefusesActionsOutsideTheSpace) {
  const Error high = StepError(Arguments{}, {.rows = 2}, Tensor::From<int64_t>({2}, {0, 5}), 1);
  EXPECT_EQ(high.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(high.message().find("row 1 (seed 0): element 0 of the action is 6"), std::string::npos)
      << high.message();
  EXPECT_EQ(StepError(Arguments{}, {.rows = 1}, Tensor::From<int64_t>({1}, {-1}), 1).code(),
            ErrorCode::kInvalidArgument);
  Arguments continuous;
  continuous.continuous = true;
  EXPECT_EQ(StepError(continuous, {.rows = 1}, Tensor::From<float>({1, 1}, {NAN}), 1).code(),
            ErrorCode::kDiverged);
}

// Two actions of which step t allows what bit t of each says; ends with step 2.
class Masked final : public Environment {
 public:
  struct Arguments : NoArguments {
    uint8_t allowed[2] = {0b011, 0b010};
  };
  explicit Masked(const Arguments& arguments)
      : arguments_(arguments), spec_(std::make_unique<EnvironmentSpec>()) {
    *spec_ = {.id = "Masked-v0",
              .observation = {{.name = "observation", .shape = {1}},
                              {.name = "action_mask", .shape = {2}, .dtype = DType::kUInt8}},
              .action = Discrete{.n = 2}};
  }
  const EnvironmentSpec& spec() const override { return *spec_; }
  void Reset(Rng&, StepRow out) override {
    step_ = 0;
    Observe(out.observation);
    out.First();
  }
  void Step(ActionRow, Rng&, StepRow out) override {
    ++step_;
    Observe(out.observation);
    out.Next(0, step_ == 2);
  }
  void GetState(std::vector<double>&) const override {}
  void SetState(std::span<const double>) override {}
  void Observe(ObservationRow out) override {
    out.Leaf<float>()[0] = 0;
    for (int a = 0; a < 2; ++a) out.Leaf<uint8_t>(1)[a] = (arguments_.allowed[a] >> step_) & 1;
  }

 private:
  Arguments arguments_;
  int step_ = 0;
  std::unique_ptr<EnvironmentSpec> spec_;
};

TEST(BatchOf, AllowsEverythingWhereAnEndLeavesNothing) {
  BatchOf<Masked> batch({}, {});
  TimeStep out = batch.MakeTimeStep();
  batch.Reset(out);
  const auto mask = out.observation.At("action_mask").data<uint8_t>();
  const Tensor action = Tensor::Zeros({1}, DType::kInt64);
  EXPECT_THAT(mask, testing::ElementsAre(1, 0));
  batch.Step(action, out);
  EXPECT_THAT(mask, testing::ElementsAre(1, 1));
  batch.Step(action, out);
  EXPECT_THAT(mask, testing::ElementsAre(1, 1));
}

TEST(BatchOf, RefusesAMaskThatAllowsNothingBeforeTheEnd) {
  Masked::Arguments arguments;
  arguments.allowed[0] = arguments.allowed[1] = 0b101;
  BatchOf<Masked> batch(arguments, {.seed = 3});
  TimeStep out = batch.MakeTimeStep();
  batch.Reset(out);
  try {
    batch.Step(Tensor::Zeros({1}, DType::kInt64), out);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(),
                testing::HasSubstr("Masked-v0, row 0 (seed 3): action_mask allows nothing"));
  }
}

TEST(BatchOf, IgnoresTheActionOfARowThatIsReset) {
  Batch batch(Arguments{}, {.rows = 1, .time_limit = 1});
  TimeStep step = batch.MakeTimeStep();
  batch.Reset(step);
  batch.Step(Actions(1, 0), step);
  batch.Step(Actions(1, -4242), step);
  EXPECT_EQ(step.type.data<uint8_t>()[0], kFirst);
}

TEST(BatchOf, RefusesTensorsOfTheWrongShape) {
  Batch batch(Arguments{}, {.rows = 2});
  TimeStep step = batch.MakeTimeStep();
  batch.Reset(step);
  EXPECT_THROW(batch.Step(Actions(3, 0), step), Error);
  EXPECT_THROW(batch.Step(Tensor::Zeros({2}), step), Error);
  EXPECT_THROW(batch.Step(Tensor(), step), Error);
  TimeStep short_step = Batch(Arguments{}, {.rows = 1}).MakeTimeStep();
  EXPECT_THROW(batch.Step(Actions(2, 0), short_step), Error);
  EXPECT_THROW(Batch(Arguments{}, {.rows = 0}), Error);
}

}  // namespace
}  // namespace weft
