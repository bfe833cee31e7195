// Environments that break their promises: the error names environment, row, step and what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <semaphore>
#include <stdexcept>
#include <thread>

#include "environments/batch_of.h"

namespace weft {
namespace {

using testing::HasSubstr;

enum class Misdeed {
  kNone,
  kThrows,
  kWritesNan,
  kPaysInfinity,
  kLeavesFloatBounds,
  kLeavesIntegerBounds,
  kLeavesNominalBounds,
  kWritesNoOutcome,
  kWritesFirstInAStep,
  kWritesADiscountInTheMiddle,
  kForgetsFirst,
  kHangs
};

std::counting_semaphore<> release{0};

// Does its misdeed in step 2, or in a reset.
class Misbehaving final : public Environment {
 public:
  struct Arguments : NoArguments {
    explicit Arguments(Misdeed of_it) : misdeed(of_it) {}
    Misdeed misdeed;
  };
  explicit Misbehaving(const Arguments& arguments)
      : misdeed_(arguments.misdeed), spec_(std::make_unique<EnvironmentSpec>()) {
    *spec_ = {.id = "Misbehaving-v0",
              .observation =
                  {{.name = "angle",
                    .shape = {3},
                    .low = {-1, -1, -std::numeric_limits<double>::infinity()},
                    .high = {1, 1, std::numeric_limits<double>::infinity()},
                    .nominal = arguments.misdeed == Misdeed::kLeavesNominalBounds},
                   {.name = "gear", .shape = {}, .dtype = DType::kInt64, .low = {0}, .high = {5}}},
              .action = Discrete{.n = 2}};
  }
  const EnvironmentSpec& spec() const override { return *spec_; }
  void Reset(Rng&, StepRow out) override {
    steps_ = 0;
    Observe(out.observation);
    if (misdeed_ != Misdeed::kForgetsFirst) out.First();
  }
  void Step(ActionRow, Rng&, StepRow out) override {
    ++steps_;
    Observe(out.observation);
    if (steps_ != 2) return out.Next(1, false);
    float* angle = out.observation.Leaf<float>(0);
    switch (misdeed_) {
      case Misdeed::kThrows:
        throw std::runtime_error("the cable broke");
      case Misdeed::kWritesNan:
        angle[2] = std::numeric_limits<float>::quiet_NaN();
        break;
      case Misdeed::kPaysInfinity:
        return out.Next(std::numeric_limits<double>::infinity(), false);
      case Misdeed::kLeavesFloatBounds:
      case Misdeed::kLeavesNominalBounds:
        angle[1] = 1.5f;
        break;
      case Misdeed::kLeavesIntegerBounds:
        *out.observation.Leaf<int64_t>(1) = 6;
        break;
      case Misdeed::kWritesNoOutcome:
        return;
      case Misdeed::kWritesFirstInAStep:
        return out.First();
      case Misdeed::kWritesADiscountInTheMiddle:
        out.Next(1, false);
        out.discount = 0.9;
        return;
      case Misdeed::kHangs:
        release.acquire();
        break;
      default:
        break;
    }
    out.Next(1, false);
  }
  void Observe(ObservationRow out) override {
    for (size_t i = 0; i < 3; ++i) out.Leaf<float>(0)[i] = 0;
    *out.Leaf<int64_t>(1) = 5;
  }
  void GetState(std::vector<double>& state) const override {
    state = {static_cast<double>(steps_)};
  }
  void SetState(std::span<const double> state) override { steps_ = static_cast<int64_t>(state[0]); }

 private:
  Misdeed misdeed_;
  int64_t steps_ = 0;
  std::unique_ptr<EnvironmentSpec> spec_;
};

// What three steps of a batch end with; "" when all is well. Row 4 of a run is alone in it.
std::string Outcome(Misdeed misdeed) {
  BatchOf<Misbehaving> batch(Misbehaving::Arguments(misdeed),
                             {.rows = 1, .first_row = 4, .seed = 9});
  TimeStep step = batch.MakeTimeStep();
  try {
    batch.Reset(step);
    for (int i = 0; i < 3; ++i) batch.Step(Tensor::Zeros({1}, DType::kInt64), step);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(Misbehaviour, IsAnErrorThatNamesEnvironmentRowStepAndField) {
  const std::string in_step = "Misbehaving-v0, row 4 (seed 9), step 2: ";
  EXPECT_EQ(Outcome(Misdeed::kNone), "");
  EXPECT_EQ(Outcome(Misdeed::kThrows), in_step + "the cable broke");
  EXPECT_EQ(Outcome(Misdeed::kWritesNan), in_step + "angle[2] is not finite");
  EXPECT_EQ(Outcome(Misdeed::kPaysInfinity), in_step + "the reward is not finite");
  EXPECT_EQ(Outcome(Misdeed::kLeavesFloatBounds),
            in_step + "angle[1] is 1.5, outside its bounds -1 .. 1");
  EXPECT_EQ(Outcome(Misdeed::kLeavesIntegerBounds),
            in_step + "gear is 6, outside its bounds 0 .. 5");
  EXPECT_EQ(Outcome(Misdeed::kLeavesNominalBounds), "");
  EXPECT_THAT(Outcome(Misdeed::kWritesNoOutcome), HasSubstr(in_step + "Step left the type kFirst"));
  EXPECT_THAT(Outcome(Misdeed::kWritesFirstInAStep),
              HasSubstr(in_step + "Step left the type kFirst"));
  EXPECT_THAT(Outcome(Misdeed::kWritesADiscountInTheMiddle),
              HasSubstr(in_step + "Step left the type kMid and the discount 0.9"));
  EXPECT_THAT(Outcome(Misdeed::kForgetsFirst),
              HasSubstr("Misbehaving-v0, row 4 (seed 9), reset: Reset left the type kLast"));
}

TEST(Misbehaviour, ARowThatHangsCanBeAskedFor) {
  RowActivity activity;
  EXPECT_EQ(activity.Text(), "");
  BatchOf<Misbehaving> batch(Misbehaving::Arguments(Misdeed::kHangs),
                             {.rows = 2, .first_row = 6, .seed = 3, .activity = &activity});
  TimeStep step = batch.MakeTimeStep();
  batch.Reset(step);
  EXPECT_EQ(activity.Text(), "");
  std::thread stepping([&] {
    for (int i = 0; i < 2; ++i) batch.Step(Tensor::Zeros({2}, DType::kInt64), step);
  });
  const auto hangs = [&](const std::string& row) {
    while (activity.Text() != row) std::this_thread::yield();  // or the test times out
    release.release();
  };
  hangs("Misbehaving-v0, row 6 (seed 3)");
  hangs("Misbehaving-v0, row 7 (seed 3)");
  stepping.join();
  EXPECT_EQ(activity.Text(), "");
}

}  // namespace
}  // namespace weft
