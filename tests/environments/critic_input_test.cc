#include "environments/critic_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"

namespace weft {
namespace {

using testing::ElementsAre;

EnvironmentSpec TwoAgents() {
  return {.id = "Two-v0",
          .observation = {{.name = "observation", .shape = {1}}},
          .action = Discrete{.n = 2},
          .agents = {{"left", 1, Discrete{.n = 2}}, {"right", 1, Discrete{.n = 2}}}};
}

EnvironmentSpec OneAgentWithState() {
  return {.id = "Secret-v0",
          .observation = {{.name = "observation", .shape = {1}}, {.name = "state", .shape = {2}}},
          .action = Discrete{.n = 2}};
}

TEST(CriticInput, IsTheObservationItselfUnlessAskedForMore) {
  const CriticInput critic(TwoAgents(), {1}, /*centralised=*/false);
  const Tensor x = Tensor::From<float>({2, 1}, {1, 2});
  EXPECT_EQ(critic(x, {}, 1).raw(), x.raw());
  EXPECT_EQ(critic.shape(), Shape({1}));
}

TEST(CriticInput, PutsTheObservationsOfAllAgentsBesideItsOwn) {
  const CriticInput critic(TwoAgents(), {1}, /*centralised=*/true);
  EXPECT_EQ(critic.shape(), Shape({3}));
  // Two steps of two environments of two agents.
  const Tensor x = Tensor::From<float>({2, 4, 1}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor input = critic(x, {}, 2);
  EXPECT_EQ(input.shape(), Shape({2, 4, 3}));
  EXPECT_THAT(input.data<float>(), ElementsAre(1, 1, 2, 2, 1, 2, 3, 3, 4, 4, 3, 4,  //
                                               5, 5, 6, 6, 5, 6, 7, 7, 8, 8, 7, 8));
}

TEST(CriticInput, PrefersTheStateThatTheEnvironmentTells) {
  const EnvironmentSpec spec = OneAgentWithState();
  const ObservationInput policy(spec, {});
  EXPECT_EQ(policy.shape(), Shape({1})) << "policies never see the state";
  const CriticInput critic(spec, policy.shape(), /*centralised=*/true);
  TensorMap leaves;
  leaves.Set("observation", Tensor::From<float>({2, 1}, {1, 2}));
  leaves.Set("state", Tensor::From<float>({2, 2}, {3, 4, 5, 6}));
  EXPECT_THAT(critic(policy(leaves, 1), leaves, 1).data<float>(), ElementsAre(1, 3, 4, 2, 5, 6));
}

TEST(CriticInput, RefusesAnEnvironmentWithoutState) {
  EnvironmentSpec spec = OneAgentWithState();
  spec.observation.pop_back();
  EXPECT_THROW(CriticInput(spec, {1}, true), ConfigProblem);
}

}  // namespace
}  // namespace weft
