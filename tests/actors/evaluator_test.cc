#include "actors/evaluator.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

// Always the same discrete action.
class Constant final : public Agent {
 public:
  explicit Constant(int64_t action) : action_(action) {}
  void Load(const TensorMap&) override {}
  void Act(const ActRequest& request, TensorMap& chosen) override {
    chosen.Set("action", Tensor::Full({request.step.At("reward").dim(0)},
                                      static_cast<double>(action_), DType::kInt64));
  }
  void Export(OnnxGraph&) const override {}

 private:
  int64_t action_;
};

EnvironmentConfig ConfigOf(const std::string& id) {
  EnvironmentConfig config;
  config.SetId(id);
  return config;
}

TEST(Evaluate, RunsExactlyTheEpisodesAskedFor) {
  for (const int64_t episodes : {1, 3, 7, 20}) {
    Constant agent(0);
    const Evaluation result =
        Evaluate(ConfigOf("MountainCar-v0"), agent, {.episodes = episodes, .rows = 4}, nullptr);
    EXPECT_EQ(result.n, episodes);
    EXPECT_EQ(result.mean, -200) << "pushing left only, every episode is cut off at 200 steps";
    EXPECT_EQ(result.std, 0);
    EXPECT_EQ(result.mean_length, 200);
  }
}

// CliffWalking has no time limit, and going left only never ends.
TEST(Evaluate, CutsOffEpisodesThatNeverEnd) {
  Constant agent(3);
  const Evaluation result = Evaluate(ConfigOf("CliffWalking-v1"), agent,
                                     {.episodes = 5, .rows = 2, .longest = 50}, nullptr);
  EXPECT_EQ(result.n, 5);
  EXPECT_EQ(result.mean_length, 50);
}

TEST(Evaluate, TheSameSeedGivesTheSameEpisodes) {
  Constant agent(1);
  const EvaluationOptions options{.episodes = 50, .rows = 5, .seed = 3};
  const Evaluation first = Evaluate(ConfigOf("CartPole-v1"), agent, options, nullptr);
  const Evaluation second = Evaluate(ConfigOf("CartPole-v1"), agent, options, nullptr);
  EXPECT_EQ(first.mean, second.mean);
  EXPECT_GT(first.std, 0);
  const Evaluation other =
      Evaluate(ConfigOf("CartPole-v1"), agent, {.episodes = 50, .rows = 5, .seed = 4}, nullptr);
  EXPECT_NE(first.mean, other.mean);
}

// Falling one way lasts 8 to 11 steps: short episodes must not be counted more often than long
// ones.
TEST(Evaluate, RowsContributeEqually) {
  Constant agent(1);
  const Evaluation narrow =
      Evaluate(ConfigOf("CartPole-v1"), agent, {.episodes = 400, .rows = 1}, nullptr);
  const Evaluation wide =
      Evaluate(ConfigOf("CartPole-v1"), agent, {.episodes = 400, .rows = 100}, nullptr);
  EXPECT_NEAR(narrow.mean, wide.mean, 4 * narrow.std / 20);
}

}  // namespace
}  // namespace weft
