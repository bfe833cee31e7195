#include "environments/mpe/particle_world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "environments/multi_agent_row.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::Pointwise;

MultiAgentRow Make(const std::string& id, const std::string& arguments = "{}") {
  const EnvironmentEntry& entry = Environments().At(id);
  const auto config = entry.make_arguments();
  ConfigSource::Text(arguments, "test").Parse(*config);
  return MultiAgentRow(entry.make_multi_agent(*config));
}

void Step(MultiAgentRow& row, const std::vector<int64_t>& actions) {
  Rng rng(1, Purpose::kTest);
  row.Step(Tensor::From<int64_t>({std::ssize(actions)}, actions), rng);
}

MATCHER(NearlyEqual, "") {
  return std::abs(std::get<0>(arg) - std::get<1>(arg)) < 1e-6;
}
void ExpectObservation(const MultiAgentRow& row, int64_t agent,
                       const std::vector<double>& numbers) {
  EXPECT_THAT(row.Observation(agent), Pointwise(NearlyEqual(), numbers)) << "agent " << agent;
}

TEST(ParticleWorld, MovesWithTheOldVelocityAndThenAccelerates) {
  MultiAgentRow row = Make("simple_v3");
  row.SetState({{0, 0, 1, 0, 0.3, 0.4, 0, 0}});
  ExpectObservation(row, 0, {1, 0, 0.3, 0.4});
  Step(row, {2});
  // x = 0 + 0.1 * 1; vx = 0.75 * 1 + 0.1 * 5.
  ExpectObservation(row, 0, {1.25, 0, 0.2, 0.4});
  EXPECT_NEAR(row.reward(0), -(0.2 * 0.2 + 0.4 * 0.4), 1e-12);
}

TEST(ParticleWorld, TakesMovesInTheOrderOfTheOriginal) {
  const std::pair<int64_t, std::vector<double>> moves[] = {
      {0, {0, 0}}, {1, {-0.5, 0}}, {2, {0.5, 0}}, {3, {0, -0.5}}, {4, {0, 0.5}}};
  for (const auto& [action, velocity] : moves) {
    MultiAgentRow row = Make("simple_v3");
    row.SetState({{0, 0, 0, 0, 0, 0, 0, 0}});
    Step(row, {action});
    ExpectObservation(row, 0, {velocity[0], velocity[1], 0, 0});
  }
}

TEST(ParticleWorld, ContinuousActionsAreDifferencesOfOppositeMoves) {
  MultiAgentRow row = Make("simple_v3", "{continuous_actions: true}");
  row.SetState({{0, 0, 0, 0, 0, 0, 0, 0}});
  Rng rng(1, Purpose::kTest);
  row.Step(Tensor::From<float>({1, 5}, {1, 0.25f, 0.75f, 0.5f, 0}), rng);
  ExpectObservation(row, 0, {0.25, -0.25, 0, 0});
}

TEST(ParticleWorld, ContactsPushBothApart) {
  MultiAgentRow row = Make("simple_push_v3");
  // Radii 0.05 at a distance of 0.08: 0.02 deep, 20 margins, where log(1 + e^20) is 20 + 2e-9.
  row.SetState({{0, 0, 0.08, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, -1, -1, 0, 0, 0}});
  Step(row, {0, 0});
  const std::vector<double> state = row.State();
  const double speed = 100 * 0.001 * (20 + std::exp(-20.0)) * 0.1;
  EXPECT_NEAR(state[4], -speed, 1e-12);
  EXPECT_NEAR(state[6], speed, 1e-12);
}

TEST(ParticleWorld, KeepsTheSpeedLimit) {
  MultiAgentRow row = Make("simple_tag_v3");
  std::vector<double> state(33);
  for (size_t agent = 0; agent < 4; ++agent) state[2 * agent] = 10 * static_cast<double>(agent);
  state[8] = 3, state[9] = 4;  // 3.75 after damping, of an adversary: at most 1
  row.SetState(state);
  Step(row, {0, 0, 0, 0});
  EXPECT_NEAR(row.State()[8], 0.6, 1e-12);
  EXPECT_NEAR(row.State()[9], 0.8, 1e-12);
}

TEST(SimpleTag, PaysForContactsAndForStayingOnTheScreen) {
  MultiAgentRow row = Make("simple_tag_v3");
  // Hunters 0 and 1 touch the hunted, which is at x = 0.95, y = -1.5; they do not touch each other.
  std::vector<double> state(33);
  const double positions[] = {0.85, -1.5, 1.05, -1.5, -1, 1, 0.95, -1.5};
  std::copy(std::begin(positions), std::end(positions), state.begin());
  state[24] = state[26] = 9;  // obstacles elsewhere
  row.SetState(state);
  Step(row, {0, 0, 0, 0});
  for (int64_t hunter = 0; hunter < 3; ++hunter) EXPECT_EQ(row.reward(hunter), 20);
  EXPECT_NEAR(row.reward(3), -20 - 0.5 - std::exp(1.0), 1e-12);
}

TEST(SimpleTag, PenaltyBeginsAtTheEdgeAndIsBounded) {
  EXPECT_EQ(BoundPenalty(-0.89), 0);
  EXPECT_NEAR(BoundPenalty(0.95), 0.5, 1e-12);
  EXPECT_EQ(BoundPenalty(-1), 1);
  EXPECT_EQ(BoundPenalty(7), 10);
}

TEST(SimpleTag, EndsWhenAllAreCaughtIfAskedTo) {
  MultiAgentRow row = Make("simple_tag_v3", "{terminate_on_success: true}");
  std::vector<double> state(33);
  for (const size_t obstacle : {24, 26}) state[obstacle] = 9;
  state[2] = 1, state[4] = 2, state[6] = 5;
  row.SetState(state);
  Step(row, {0, 0, 0, 0});
  EXPECT_EQ(row.type(0), StepType::kMid);
  state[6] = 2.1;
  row.SetState(state);
  Step(row, {0, 0, 0, 0});
  for (int64_t agent = 0; agent < 4; ++agent) {
    EXPECT_EQ(row.type(agent), StepType::kLast);
    EXPECT_EQ(row.discount(agent), 0);
  }
}

// Agents at (0, 0), (0.2, 0), (5, 0), landmarks at (0, 1), (5, 0), (-1, 0).
std::vector<double> Spread() {
  return {0, 0, 0.2, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 5, 0, -1, 0, 0, 0, 0, 0};
}

TEST(SimpleSpread, WeighsDistancesAndCollisions) {
  MultiAgentRow row = Make("simple_spread_v3", "{local_ratio: 0.25}");
  row.SetState(Spread());
  Step(row, {0, 0, 0});
  // Radii 0.15: agents 0 and 1 touch. The landmarks are 1, 0 and 1 from their nearest agents.
  EXPECT_NEAR(row.reward(0), 0.75 * -2 + 0.25 * -1, 1e-12);
  EXPECT_NEAR(row.reward(1), 0.75 * -2 + 0.25 * -1, 1e-12);
  EXPECT_NEAR(row.reward(2), 0.75 * -2, 1e-12);
  ExpectObservation(row, 2, {0, 0, 5, 0, -5, 1, 0, 0, -6, 0, -5, 0, -4.8, 0, 0, 0, 0, 0});
}

TEST(SimpleSpread, CollisionsAreFreeInTheFirstStageOfTheCurriculum) {
  MultiAgentRow row = Make("simple_spread_v3", "{curriculum: true}");
  row.SetState(Spread());
  Step(row, {0, 0, 0});
  EXPECT_NEAR(row.reward(0), -1, 1e-12);
}

TEST(SimpleSpread, ShowsTheNearestAndPadsWithZeros) {
  MultiAgentRow row =
      Make("simple_spread_v3", "{num_agent_neighbors: 1, num_landmark_neighbors: 4}");
  row.SetState(Spread());
  ExpectObservation(row, 2, {0, 0, 5, 0, 0, 0, -5, 1, -6, 0, 0, 0, -4.8, 0, 0, 0});
}

TEST(SimpleSpeakerListener, IsHeardInTheNextObservation) {
  MultiAgentRow row = Make("simple_speaker_listener_v4");
  // The goal is landmark 1.
  row.SetState({{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 2, -3, 0, 1, 0, 0}});
  ExpectObservation(row, 0, {0.15, 0.65, 0.15});
  Step(row, {2, 0});
  ExpectObservation(row, 1, {0, 0, 1, 0, 0, 2, -3, 0, 0, 0, 1});
  EXPECT_EQ(row.reward(0), -4);
  EXPECT_EQ(row.reward(1), -4);
  EXPECT_EQ(row.spec().agents[0].action.ToString(), "Discrete(3)");
  EXPECT_EQ(row.spec().action.ToString(), "Discrete(5)");
  EXPECT_TRUE(row.spec().Has("action_mask"));
}

TEST(SimpleReference, AnActionIsAMoveAndAWord) {
  MultiAgentRow row = Make("simple_reference_v3");
  EXPECT_EQ(row.spec().action.ToString(), "Discrete(50)");
  EXPECT_FALSE(row.spec().Has("action_mask"));
  std::vector<double> state(8 + 20 + 6 + 3);
  state[34] = 2, state[35] = 1;  // where agent 1 should go, and agent 0
  row.SetState(state);
  Step(row, {2 + 5 * 7, 0});
  ExpectObservation(row, 0,
                    {0.5, 0, 0, 0, 0, 0, 0, 0, 0.25, 0.25, 0.75, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  ExpectObservation(row, 1,
                    {0, 0, 0, 0, 0, 0, 0, 0, 0.25, 0.75, 0.25, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0});
}

TEST(SimpleCrypto, RewardsBobForUnderstandingAndEveToo) {
  MultiAgentRow row = Make("simple_crypto_v3");
  std::vector<double> state(12 + 12 + 4 + 4);
  state[28] = state[29] = state[30] = 1;  // the goal; the key is 0
  row.SetState(state);
  Step(row, {0, 1, 3});  // Eve guesses wrong: 1 + 1, Bob right
  EXPECT_EQ(row.reward(0), -2);
  EXPECT_EQ(row.reward(1), 2);
  EXPECT_EQ(row.reward(2), 2);
  ExpectObservation(row, 0, {0, 0, 0, 1});
  ExpectObservation(row, 1, {1, 0, 0, 0, 0, 0, 0, 1});
  ExpectObservation(row, 2, {0, 1, 0, 0, 1, 0, 0, 0});
}

TEST(SimpleAdversary, OnlyGoodAgentsKnowTheGoal) {
  MultiAgentRow row = Make("simple_adversary_v3");
  std::vector<double> state(12 + 6 + 4 + 4);
  state[0] = 3, state[2] = 1, state[4] = -2;  // on the x axis
  state[18] = 5;                              // landmark 0, the other is at the origin
  state[22] = state[23] = state[24] = 1;
  row.SetState(state);
  ExpectObservation(row, 0, {2, 0, -3, 0, -2, 0, -5, 0});
  ExpectObservation(row, 1, {-1, 0, 4, 0, -1, 0, 2, 0, -3, 0});
  Step(row, {0, 0, 0});
  EXPECT_EQ(row.reward(0), -3);
  EXPECT_EQ(row.reward(1), -1 + 3);
  EXPECT_EQ(row.reward(2), -1 + 3);
}

TEST(SimpleWorldComm, ForestsHideAllButFromTheLeader) {
  MultiAgentRow row = Make("simple_world_comm_v3");
  // Agents far apart on the x axis, forests around hunter 1 and hunted 5.
  std::vector<double> state(24 + 24 + 10 + 7);
  for (size_t agent = 0; agent < 6; ++agent) state[2 * agent] = 10 * static_cast<double>(agent);
  for (size_t place = 0; place < 3; ++place) state[48 + 2 * place] = 100;
  state[48 + 6] = 10, state[48 + 8] = 50;
  row.SetState(state);
  const auto other = [&](int64_t self, size_t slot) {
    return row.Observation(self)[14 + 2 * slot];
  };
  EXPECT_EQ(other(0, 0), 10);  // the leader sees hunter 1
  EXPECT_EQ(other(2, 0), -20);
  EXPECT_EQ(other(2, 1), 0);  // another hunter does not
  EXPECT_EQ(other(1, 0), 0);  // and the one inside sees no one
  EXPECT_EQ(row.spec().agents[0].observation_size, 34);
  EXPECT_EQ(row.spec().agents[5].observation_size, 28);
  EXPECT_EQ(row.spec().agents[0].action.ToString(), "Discrete(20)");
}

TEST(ParticleWorld, RefusesAStateOfAnotherScenario) {
  MultiAgentRow row = Make("simple_v3");
  EXPECT_THROW(row.SetState({{0, 0}}), Error);
  EXPECT_THROW(row.SetState({{0, 0, 0, 0, 0, 0, 3, 0}}), Error);  // there is one landmark
}

}  // namespace
}  // namespace weft
