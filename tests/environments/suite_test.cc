#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>
#include <string>

#include "base/check.h"
#include "environments/availability.h"
#include "environments/batch_environment.h"
#include "environments/dm_control/tolerance.h"
#include "environments/environment_row.h"

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Tolerance, IsOneInsideAndItsValueAtTheMargin) {
  EXPECT_EQ(Tolerance(1.2, 1.2, kInfinity), 1);
  EXPECT_EQ(Tolerance(1.19, 1.2, kInfinity), 0);
  for (const Sigmoid sigmoid :
       {Sigmoid::kGaussian, Sigmoid::kHyperbolic, Sigmoid::kLongTail, Sigmoid::kReciprocal,
        Sigmoid::kCosine, Sigmoid::kLinear, Sigmoid::kQuadratic, Sigmoid::kTanhSquared}) {
    const Margin margin{.margin = 0.5, .sigmoid = sigmoid, .value_at_margin = 0.3};
    EXPECT_NEAR(Tolerance(-1.5, -1, 2, margin), 0.3, 1e-12);
    EXPECT_NEAR(Tolerance(2.5, -1, 2, margin), 0.3, 1e-12);
    EXPECT_EQ(Tolerance(2, -1, 2, margin), 1);
  }
}

class Suite : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = WhyUnavailable(Environments().At("dm_control/walker-walk"));
    if (!why.empty()) GTEST_SKIP() << why;
  }
};

TEST_F(Suite, EpisodesEndAfterAThousandStepsWithDiscountOne) {
  const EnvironmentEntry& entry = Environments().At("dm_control/pendulum-swingup");
  const auto batch = entry.make_batch(*entry.make_arguments(), {.rows = 1, .seed = 3});
  EXPECT_EQ(batch->spec().time_limit, 1000);
  TimeStep step = batch->MakeTimeStep();
  batch->Reset(step);
  const Tensor action = Tensor::Zeros({1, 1});
  for (int i = 0; i < 1000; ++i) {
    ASSERT_NE(step.type.data<uint8_t>()[0], static_cast<uint8_t>(StepType::kLast)) << i;
    batch->Step(action, step);
  }
  EXPECT_EQ(step.type.data<uint8_t>()[0], static_cast<uint8_t>(StepType::kLast));
  EXPECT_EQ(step.discount.data<float>()[0], 1);
}

TEST_F(Suite, CheetahsBeginAtRestAtTimeZero) {
  const EnvironmentEntry& entry = Environments().At("dm_control/cheetah-run");
  EnvironmentRow row(entry.make(*entry.make_arguments()));
  Rng rng(1, Purpose::kTest);
  row.Reset(rng);
  EXPECT_EQ(row.State().at(0), 0);                  // the time
  EXPECT_LT(std::abs(row.State().at(1 + 1)), 0.5);  // height of the torso over its first one, m
}

TEST_F(Suite, RefusesAStateOfAnotherTask) {
  const auto make = [](const char* id) {
    const EnvironmentEntry& entry = Environments().At(id);
    return EnvironmentRow(entry.make(*entry.make_arguments()));
  };
  EnvironmentRow one = make("dm_control/cartpole-swingup"),
                 two = make("dm_control/cartpole-two_poles");
  EXPECT_THROW(two.SetState(one.State()), Error);
}

TEST(SuiteFiles, NamesTheFixWhenTheyAreMissing) {
  const char* before = std::getenv("XDG_CACHE_HOME");
  const std::string kept = before == nullptr ? "" : before;
  setenv("XDG_CACHE_HOME", testing::TempDir().c_str(), 1);
  const std::string why = WhyUnavailable(Environments().At("dm_control/walker-walk"));
  before == nullptr ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", kept.c_str(), 1);
  EXPECT_NE(why.find("dm_control-1.0.50/dm_control/suite/walker.xml"), std::string::npos) << why;
  EXPECT_NE(why.find("./weft fetch dm_control"), std::string::npos) << why;
}

}  // namespace
}  // namespace weft
