#include "bench/environments.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "environments/environment.h"

namespace weft {
namespace {

TEST(BenchEnvironments, MeasuresTheBatchBesideTheBareLoop) {
  const auto figures = BenchEnvironments({"CartPole-v1", "Probe-Value-v0"}, 1);
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0].id, "CartPole-v1");
  EXPECT_GT(figures[0].steps_per_second, 1e4);
  EXPECT_GT(figures[0].bare_steps_per_second, 1e4);
  EXPECT_GT(figures[0].ratio, 0);
  EXPECT_EQ(figures[1].bare_steps_per_second, 0) << "a probe has no bare loop";
}

TEST(BenchEnvironments, PlaysMujocoOnTwoThreads) {
  if (Environments().Find("InvertedPendulum-v5") == nullptr) GTEST_SKIP() << "built without MuJoCo";
  const auto figures = BenchEnvironments({"InvertedPendulum-v5"}, 2);
  EXPECT_EQ(figures.at(0).threads, 2);
  EXPECT_GT(figures.at(0).ratio, 0);
}

TEST(BenchEnvironments, GivesSeveralAgentsLegalActions) {
  const auto figures = BenchEnvironments({"simple_speaker_listener_v4"}, 1);
  EXPECT_GT(figures.at(0).steps_per_second, 1e4);
}

TEST(BenchEnvironments, StepsEachForItself) {
  const EnvironmentFigure figure = BenchVectorEnvironment("simple_spread_v3", 2);
  EXPECT_EQ(figure.rows, 16);
  EXPECT_GT(figure.steps_per_second, 1e3);
}

TEST(BenchEnvironments, RefusesAnUnknownEnvironment) {
  EXPECT_THROW(BenchEnvironments({"CartPole-v9"}, 1), Error);
}

}  // namespace
}  // namespace weft
