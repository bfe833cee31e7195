#include "environments/verify/conformance_agents.h"

#include <set>
#include <vector>

#include "environments/environment_row.h"
#include "environments/multi_agent_row.h"
#include "environments/verify/conformance_driver.h"

namespace weft {

std::string AgentsAreSound(const EnvironmentSpec& spec) {
  std::set<std::string> names;
  for (const AgentSpec& agent : spec.agents) {
    if (!names.insert(agent.name).second) return "two agents are called " + agent.name;
    if (agent.observation_size > spec.observation.at(0).shape.elements())
      return "the observation of " + agent.name;
    if (agent.action.dtype() != spec.action.dtype() ||
        agent.action.shape().elements() > spec.action.shape().elements()) {
      return "the action of " + agent.name;
    }
  }
  return "";
}

std::string WorldsAreAlone(const EnvironmentEntry& entry) {
  ConformanceDriver driver(entry, {.rows = 3, .seed = kConformanceSeed, .time_limit = 0});
  MultiAgentRow alone(entry.make_multi_agent(*entry.make_arguments()));
  const int64_t agents = alone.spec().agent_count(), first = 2 * agents;
  Rng rng(kConformanceSeed, Purpose::kEnvironment, 2);
  driver.Reset();
  alone.Reset(rng);
  for (int t = 0; t <= 60; ++t) {
    const Tensor observed = driver.step().observation.entry(0).second;
    for (int64_t agent = 0; agent < agents; ++agent) {
      const int64_t row = first + agent;
      const auto& of_agent = alone.spec().agents[static_cast<size_t>(agent)];
      std::vector<double> got, expected = alone.Observation(agent);
      AppendNumbers(observed.Row(row), got);
      got.resize(static_cast<size_t>(of_agent.observation_size));
      for (double& value : expected) value = static_cast<float>(value);
      const float reward = driver.step().reward.data<float>()[static_cast<size_t>(row)];
      if (driver.type(row) != alone.type(agent) ||
          reward != static_cast<float>(alone.reward(agent)) ||
          (got != expected && alone.type(agent) != StepType::kLast)) {
        return "step " + std::to_string(t) + " of " + of_agent.name +
               " differs from the environment alone";
      }
    }
    driver.Act();
    if (alone.over()) {
      alone.Reset(rng);
    } else {
      alone.Step(driver.action().Slice(first, first + agents), rng);
    }
  }
  return "";
}

}  // namespace weft
