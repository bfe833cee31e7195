#include "environments/verify/verify_particles.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/check.h"

namespace weft {
namespace {

constexpr double kTolerance = 1e-10, kObservationTolerance = 1e-6, kErrors = 4;

// Row [episode, time] of a tensor of `times` steps.
std::span<const double> At(const std::vector<double>& episode, int64_t time, int64_t times) {
  const size_t size = episode.size() / static_cast<size_t>(times);
  return std::span(episode).subspan(static_cast<size_t>(time) * size, size);
}

// A recorded start as ParticleWorld::SetState takes it. Goals and keys are numbers of agents and
// landmarks, of which only landmarks count.
std::vector<double> Start(const Recording& recording, int64_t episode, size_t agents) {
  std::vector<double> state;
  for (const char* part :
       {"start.agent_pos", "start.agent_vel", "start.agent_comm", "start.landmark_pos"}) {
    if (!recording.Has(part)) continue;  // no one speaks
    const std::vector<double> values = recording.Row(part, episode);
    state.insert(state.end(), values.begin(), values.end());
  }
  const std::vector<double> goals = recording.Row("start.goal", episode);
  const auto first = static_cast<double>(agents);
  double key = 0;
  for (size_t agent = 0; agent < agents; ++agent) {
    const double* of = &goals[3 * agent];  // goal_a, goal_b, key
    const double goal = std::max(of[0], of[1] < first ? -1 : of[1]);
    state.push_back(std::max(0.0, goal - first));
    key = std::max(key, of[2] - first);
  }
  state.push_back(key);
  return state;
}

// The recorded actions of a step, as wide as the rows.
void FillActions(const std::vector<std::vector<double>>& episode, int64_t time, int64_t times,
                 Tensor& actions) {
  for (size_t agent = 0; agent < episode.size(); ++agent) {
    const auto values = At(episode[agent], time, times);
    if (actions.dtype() == DType::kInt64) {
      actions.data<int64_t>()[agent] = static_cast<int64_t>(values[0]);
    } else {
      std::ranges::copy(values, actions.data<double>().begin() +
                                    static_cast<std::ptrdiff_t>(agent) * actions.dim(1));
    }
  }
}

std::pair<double, double> MeanAndVariance(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double mean = 0, variance = 0;
  for (const double value : values) mean += value / n;
  for (const double value : values) variance += (value - mean) * (value - mean) / (n - 1);
  return {mean, variance};
}

void CheckScenario(const Recording& recording, const std::string& scenario,
                   Comparison& comparison) {
  const std::vector<std::string> ids = Environments().Names();
  const auto id = std::ranges::find_if(
      ids, [&](const std::string& name) { return name.starts_with(scenario + "_v"); });
  WEFT_CHECK(id != ids.end()) << recording.name() << ": " << scenario << " is not registered";
  const EnvironmentEntry& entry = Environments().At(*id);
  MultiAgentRow row(entry.make_multi_agent(*entry.make_arguments()));
  const EnvironmentSpec& spec = row.spec();
  const int64_t episodes = recording.Rows(scenario + "." + spec.agents[0].name);
  std::vector<std::vector<double>> returns(spec.agents.size());
  Tensor actions = Tensor::Zeros({spec.agent_count()}, DType::kInt64);
  Rng rng(2, Purpose::kTest), action_rng(3, Purpose::kTest);
  for (int64_t episode = 0; episode < episodes; ++episode) {
    row.Reset(rng);
    for (auto& of_agent : returns) of_agent.push_back(0);
    for (int64_t time = 0; time < spec.time_limit; ++time) {
      for (size_t agent = 0; agent < returns.size(); ++agent)
        spec.agents[agent].action.Sample(action_rng, &actions.data<int64_t>()[agent]);
      row.Step(actions, rng);
      for (size_t agent = 0; agent < returns.size(); ++agent)
        returns[agent].back() += row.reward(static_cast<int64_t>(agent));
    }
  }
  for (size_t agent = 0; agent < returns.size(); ++agent) {
    const std::string tensor = scenario + "." + spec.agents[agent].name;
    const auto [mean, variance] = MeanAndVariance(returns[agent]);
    const auto [expected, expected_variance] = MeanAndVariance(recording.All(tensor));
    comparison.Check(
        tensor + " (mean)", mean, expected,
        kErrors * std::sqrt((variance + expected_variance) / static_cast<double>(episodes)));
  }
}

}  // namespace

void VerifyParticles(const Recording& recording, MultiAgentRow& row, Comparison& comparison) {
  const EnvironmentSpec& spec = row.spec();
  const auto agents = static_cast<size_t>(spec.agent_count());
  for (const AgentSpec& agent : spec.agents) {
    WEFT_CHECK(recording.Has("action." + agent.name))
        << recording.name() << " has no agent " << agent.name;
  }
  const bool discrete = spec.action.As<Discrete>() != nullptr;
  Tensor actions = Tensor::Zeros(spec.action.shape().Prepend(spec.agent_count()),
                                 discrete ? DType::kInt64 : DType::kFloat64);
  Rng rng(1, Purpose::kTest);
  for (int64_t episode = 0; episode < recording.Rows("start.agent_pos"); ++episode) {
    const auto part = [&](const std::string& name) {
      return recording.Has(name) ? recording.Row(name, episode) : std::vector<double>();
    };
    std::vector<std::vector<double>> action, observation, reward;
    for (const AgentSpec& agent : spec.agents) {
      action.push_back(part("action." + agent.name));
      observation.push_back(part("obs." + agent.name));
      reward.push_back(part("reward." + agent.name));
    }
    const auto position = part("state.agent_pos"), velocity = part("state.agent_vel"),
               message = part("state.agent_comm"), terminated = part("terminated"),
               truncated = part("truncated");
    const auto times = std::ssize(reward[0]);
    const auto check_observations = [&](int64_t time) {
      for (size_t agent = 0; agent < agents; ++agent) {
        comparison.CheckFloat32("obs." + spec.agents[agent].name,
                                row.Observation(static_cast<int64_t>(agent)),
                                At(observation[agent], time, times + 1), kObservationTolerance);
      }
    };
    row.SetState(Start(recording, episode, agents));
    check_observations(0);
    for (int64_t time = 0; time < times; ++time) {
      FillActions(action, time, times, actions);
      row.Step(actions, rng);
      check_observations(time + 1);
      const std::vector<double> state = row.State();
      size_t begin = 0;
      for (const auto& [name, values] :
           {std::pair("state.agent_pos", &position), std::pair("state.agent_vel", &velocity),
            std::pair("state.agent_comm", &message)}) {
        const auto expected = At(*values, time, times);
        comparison.Check(name, std::span(state).subspan(begin, expected.size()), expected,
                         kTolerance);
        begin += expected.size();
      }
      for (size_t agent = 0; agent < agents; ++agent) {
        const auto index = static_cast<int64_t>(agent);
        comparison.Check("reward." + spec.agents[agent].name, row.reward(index),
                         At(reward[agent], time, times)[0], kTolerance);
        comparison.Check("terminated", row.type(index) == StepType::kLast,
                         At(terminated, time, times)[agent], 0);
        comparison.Check("truncated", time + 1 == spec.time_limit,
                         At(truncated, time, times)[agent], 0);
      }
    }
  }
}

void VerifyParticleReturns(const Recording& recording, Comparison& comparison) {
  std::set<std::string> scenarios;
  for (const std::string& name : recording.Names(""))
    scenarios.insert(name.substr(0, name.find('.')));
  for (const std::string& scenario : scenarios) CheckScenario(recording, scenario, comparison);
}

}  // namespace weft
