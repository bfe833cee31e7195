#include "environments/space.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <map>

#include "base/check.h"
#include "base/random.h"

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Space, SaysShapeDtypeAndBoundsOfItsCanonicalForm) {
  const Space box = Box{.low = {-1, -1}, .high = {1, 1}};
  EXPECT_EQ(box.shape(), Shape({2}));
  EXPECT_EQ(box.dtype(), DType::kFloat32);
  EXPECT_TRUE(box.bounded());
  EXPECT_EQ(box.ToString(), "Box(-1, 1, [2])");
  EXPECT_EQ(Space(Box{.low = {-1, -2}, .high = {1, kInfinity}}).ToString(),
            "Box([-1, -2], [1, inf], [2])");
  EXPECT_FALSE(Space(Box{.low = {-1, -2}, .high = {1, kInfinity}}).bounded());

  const Space discrete = Discrete{.n = 4, .start = 2};
  EXPECT_EQ(discrete.shape(), Shape());
  EXPECT_EQ(discrete.dtype(), DType::kInt64);
  EXPECT_EQ(discrete.ToString(), "Discrete(4, start=2)");
  EXPECT_EQ(Space(MultiDiscrete{.n = {2, 3}, .start = {}}).shape(), Shape({2}));
  EXPECT_EQ(Space(MultiBinary{.n = 5}).shape(), Shape({5}));
}

TEST(Space, SamplesUniformlyInsideItsBounds) {
  Rng rng(3, Purpose::kTest);
  constexpr int kDraws = 20000;
  const Space box = Box{.low = {-2}, .high = {4}};
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    float action;
    box.Sample(rng, &action);
    ASSERT_GE(action, -2);
    ASSERT_LE(action, 4);
    sum += action;
  }
  EXPECT_NEAR(sum / kDraws, 1, 4 * 6 / std::sqrt(12.0 * kDraws));  // four standard errors

  const Space discrete = Discrete{.n = 3, .start = 7};
  int counts[3] = {};
  for (int i = 0; i < kDraws; ++i) {
    int64_t action;
    discrete.Sample(rng, &action);
    ASSERT_GE(action, 0);
    ASSERT_LT(action, 3);
    ++counts[action];
  }
  for (const int count : counts) EXPECT_NEAR(count, kDraws / 3.0, 4 * std::sqrt(kDraws * 2 / 9.0));
}

TEST(Space, SamplesHalfBoundedElementsBeyondTheirBound) {
  Rng rng(4, Purpose::kTest);
  const Space box = Box{.low = {1, -kInfinity, -kInfinity}, .high = {kInfinity, -1, kInfinity}};
  double above = 0, below = 0, square = 0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    float action[3];
    box.Sample(rng, action);
    ASSERT_GE(action[0], 1);
    ASSERT_LE(action[1], -1);
    above += action[0];
    below += action[1];
    square += action[2] * action[2];
  }
  EXPECT_NEAR(above / kDraws, 2, 0.03);
  EXPECT_NEAR(below / kDraws, -2, 0.03);
  EXPECT_NEAR(square / kDraws, 1, 0.05);
}

TEST(EnvironmentSpec, NamesTheLeavesThereAreWhenOneIsMissing) {
  const EnvironmentSpec spec{
      .id = "Test-v0", .observation = {{.name = "image", .shape = {3}}}, .action = {}};
  EXPECT_EQ(spec.leaf("image").shape, Shape({3}));
  try {
    spec.leaf("imagee");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("it has image"), std::string::npos) << error.message();
  }
}

TEST(Space, DrawsOnlyWhatAMaskAllowsAndAllOfIt) {
  Rng rng(1, Purpose::kTest);
  const Space discrete = Discrete{.n = 5};
  const uint8_t mask[] = {0, 1, 0, 1, 1};
  std::map<int64_t, int> drawn;
  for (int i = 0; i < 3000; ++i) {
    int64_t action = -1;
    discrete.Sample(rng, mask, &action);
    ++drawn[action];
  }
  ASSERT_EQ(drawn.size(), 3u);
  for (const int64_t action : {1, 3, 4}) EXPECT_NEAR(drawn[action], 1000, 130) << action;

  const Space multi = MultiDiscrete{.n = {2, 3}, .start = {}};
  const uint8_t sections[] = {0, 1, 1, 0, 0};
  int64_t actions[2] = {-1, -1};
  multi.Sample(rng, sections, actions);
  EXPECT_EQ(actions[0], 1);
  EXPECT_EQ(actions[1], 0);
}

TEST(Space, RefusesAMaskThatAllowsNothing) {
  Rng rng(1, Purpose::kTest);
  const uint8_t mask[] = {0, 0};
  int64_t action = 0;
  EXPECT_THROW(Space(Discrete{.n = 2}).Sample(rng, mask, &action), Error);
}

}  // namespace
}  // namespace weft
