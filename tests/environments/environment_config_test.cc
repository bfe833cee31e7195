#include "environments/environment_config.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

struct Root : Config {
  void Fields(FieldVisitor& v) override {
    v.Section("environment", environment, "what is acted in");
  }
  EnvironmentConfig environment;
};

EnvironmentConfig Parse(const std::string& yaml) {
  Root root;
  ConfigSource::Text(yaml, "test.yaml").Parse(root);
  return root.environment;
}

// What Parse says about a bad config.
std::string Complaint(const std::string& yaml) {
  try {
    Parse(yaml);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    return error.message();
  }
  return "nothing";
}

TEST(EnvironmentConfig, ReadsIdArgumentsRowsAndWrappers) {
  const EnvironmentConfig config = Parse(R"(
environment:
  id: Pendulum-v1
  rows: 12
  time_limit: 50
  arguments: {g: 9.5}
  wrappers:
    - {name: action_repeat, count: 2}
    - scale_action
    - {name: clip_reward, low: -2, high: 3}
  normalise_observation: {enabled: true, clip: 5}
)");
  EXPECT_EQ(config.id, "Pendulum-v1");
  EXPECT_EQ(config.rows, 12);
  EXPECT_EQ(config.time_limit, 50);
  EXPECT_NE(ToYaml(*config.arguments).find("9.5"), std::string::npos);
  ASSERT_EQ(config.wrappers.size(), 3u);
  EXPECT_EQ(config.wrappers[0].count, 2);
  EXPECT_EQ(config.wrappers[1].name, "scale_action");
  EXPECT_EQ(config.wrappers[2].high, 3);
  EXPECT_TRUE(config.normalise_observation.enabled);
  EXPECT_EQ(config.normalise_observation.clip, 5);
  EXPECT_EQ(config.normalise_observation.epsilon, 1e-8);
  EXPECT_FALSE(config.normalise_reward.enabled);
}

TEST(EnvironmentConfig, IsTheSameAfterWritingAndReading) {
  Root root;
  ConfigSource::Text(
      "environment: {id: Pendulum-v1, arguments: {g: 9.5}, wrappers: [{name: frame_stack, count: "
      "3}]}",
      "test.yaml")
      .Parse(root);
  const std::string yaml = ToYaml(root);
  Root again;
  ConfigSource::Text(yaml, "again.yaml").Parse(again);
  EXPECT_EQ(ToYaml(again), yaml);
  EXPECT_EQ(again.environment.wrappers.at(0).count, 3);
}

TEST(EnvironmentConfig, CopiesItsArguments) {
  EnvironmentConfig config = Parse("environment: {id: Pendulum-v1, arguments: {g: 9.5}}");
  const EnvironmentConfig copy = config;
  config.SetId("CartPole-v1");
  EXPECT_NE(ToYaml(*copy.arguments).find("9.5"), std::string::npos);
  EXPECT_EQ(ToYaml(*config.arguments).find("9.5"), std::string::npos);
}

TEST(EnvironmentConfig, NamesTheNearestForUnknownThings) {
  EXPECT_NE(Complaint("environment: {id: CartPole-v2}").find("CartPole-v1"), std::string::npos);
  EXPECT_NE(Complaint("environment: {id: CartPole-v1, wrappers: [frame_stak]}").find("frame_stack"),
            std::string::npos);
  EXPECT_NE(Complaint("environment: {id: CartPole-v1, arguments: {g: 1}}")
                .find("environment.arguments.g"),
            std::string::npos);
  EXPECT_NE(Complaint("environment: {rows: 2}").find("environment.id"), std::string::npos);
  EXPECT_NE(Complaint("environment: {id: CartPole-v1, rows: 0}").find("environment.rows"),
            std::string::npos);
}

TEST(EnvironmentConfig, RefusesCombinationsThatMeanNothing) {
  EXPECT_NE(Complaint("environment: {id: Pendulum-v1, wrappers: [clip_action, {name: "
                      "action_repeat, count: 2}]}")
                .find("must come first"),
            std::string::npos);
  EXPECT_NE(
      Complaint("environment: {id: Pendulum-v1, wrappers: [{name: clip_reward, low: 1, high: 1}]}")
          .find("above low"),
      std::string::npos);
  EXPECT_NE(Complaint("environment: {id: Pendulum-v1, wrappers: [sticky_actions, sticky_actions]}")
                .find("twice"),
            std::string::npos);
  EXPECT_THROW(
      MakeBatchEnvironment(Parse("environment: {id: CartPole-v1, wrappers: [scale_action]}"), {}),
      ConfigProblem);
}

TEST(EnvironmentConfig, WrapsInTheOrderOfTheList) {
  const EnvironmentConfig config = Parse(R"(
environment:
  id: simple_spread_v3
  wrappers:
    - {name: sticky_actions, probability: 0.1}
    - {name: reward_shaping, scale: 0.5, shift: 1}
    - {name: share_reward, share: sum}
    - agent_id
    - {name: clip_observation, low: -3}
    - flatten
    - {name: frame_stack, count: 2}
)");
  EXPECT_EQ(config.wrappers[4].high, 10);
  const EnvironmentSpec spec = config.Spec();
  ASSERT_EQ(spec.observation.size(), 1u);
  EXPECT_EQ(spec.observation[0].shape, Shape({2 * (18 + 3)}));
  const EnvironmentConfig pictures = Parse(
      "environment: {id: CartPole-v1, wrappers: [{name: pixels, width: 60, height: 40}, grayscale, "
      "{name: resize, width: 30, height: 20}]}");
  EXPECT_EQ(pictures.Spec().leaf("pixels").shape, Shape({1, 20, 30}));
}

TEST(EnvironmentConfig, TakesTimeLimitAndRepeatFromTheConfig) {
  const auto batch = MakeBatchEnvironment(Parse("environment: {id: Pendulum-v1, time_limit: 7, "
                                                "wrappers: [{name: action_repeat, count: 3}]}"),
                                          {.rows = 1});
  TimeStep step = batch->MakeTimeStep();
  batch->Reset(step);
  int steps = 0;
  do {
    batch->Step(Tensor::Zeros({1, 1}), step);
    ++steps;
  } while (step.type.data<uint8_t>()[0] != static_cast<uint8_t>(StepType::kLast));
  EXPECT_EQ(steps, 3);  // 3 + 3 + 1 steps of the environment
}

}  // namespace
}  // namespace weft
