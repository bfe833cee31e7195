#include "environments/environment_config.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "environments/python/python_environment.h"

namespace weft {
void NormaliserConfig::Fields(FieldVisitor& visitor) {
  visitor.Field("enabled", enabled, "normalise by running statistics, which the learner keeps");
  visitor.Field("clip", clip, "bound of the normalised value", Range::Positive());
  visitor.Field("epsilon", epsilon, "added to the variance", Range::Positive());
}

EnvironmentConfig::EnvironmentConfig(const EnvironmentConfig& other)
    : id(other.id),
      arguments(other.arguments ? FindEnvironment(other.id).copy_arguments(*other.arguments)
                                : nullptr),
      rows(other.rows),
      time_limit(other.time_limit),
      wrappers(other.wrappers),
      normalise_observation(other.normalise_observation),
      normalise_reward(other.normalise_reward) {}

EnvironmentConfig& EnvironmentConfig::operator=(const EnvironmentConfig& other) {
  return *this = EnvironmentConfig(other);
}

void EnvironmentConfig::SetId(const std::string& new_id) {
  arguments = FindEnvironment(new_id).make_arguments();
  id = new_id;
}

void EnvironmentConfig::Fields(FieldVisitor& visitor) {
  std::string new_id = id;
  visitor.Field("id", new_id, "registered name, as `weft list environments` shows it");
  std::string target;
  visitor.Field("python", target,
                "instead of id: MODULE:NAME of an environment in Python, short for id: python:...");
  if (!target.empty()) {
    if (new_id != id) throw ConfigProblem("python", "the environment has an id already, " + new_id);
    new_id = kPythonPrefix + target;
  }
  target.clear();
  visitor.Field("mujoco", target,
                "instead of id: the file of a MuJoCo task, short for id: mujoco:...");
  if (!target.empty()) {
    if (new_id != id) throw ConfigProblem("mujoco", "the environment has an id already, " + new_id);
    new_id = "mujoco:" + target;
  }
  if (new_id != id) SetId(new_id);
  if (arguments) visitor.Section("arguments", *arguments, "keyword arguments of the environment");
  visitor.Field("rows", rows,
                "environments that step together, over all replicas; each agent of one has a row",
                Range::AtLeast(1));
  visitor.Field("time_limit", time_limit,
                "steps until an episode is truncated; -1: the registered limit, 0: none",
                Range::AtLeast(-1));
  visitor.Sections(
      "wrappers",
      {.clear = [this] { wrappers.clear(); },
       .make = [this](const std::string& name) -> Config& { return wrappers.emplace_back(name); },
       .current =
           [this] {
             std::vector<std::pair<std::string, Config*>> sections;
             for (WrapperConfig& wrapper : wrappers) sections.emplace_back(wrapper.name, &wrapper);
             return sections;
           }},
      "what is wrapped around the environment, the nearest first");
  visitor.Section("normalise_observation", normalise_observation,
                  "observations by running mean and deviation");
  visitor.Section("normalise_reward", normalise_reward,
                  "rewards by the running deviation of the return");
}

void EnvironmentConfig::Check() const {
  if (id.empty()) throw ConfigProblem("id", "the environment is missing");
  for (size_t i = 1; i < wrappers.size(); ++i) {
    if (wrappers[i].name == "action_repeat") {
      throw ConfigProblem("wrappers",
                          "action_repeat must come first: the batch itself holds the action");
    }
  }
  const auto sticks = [](const WrapperConfig& wrapper) { return wrapper.name == "sticky_actions"; };
  if (std::ranges::count_if(wrappers, sticks) > 1)
    throw ConfigProblem("wrappers", "sticky_actions stands there twice: one says it all");
}

EnvironmentSpec EnvironmentConfig::Spec() const {
  return MakeBatchEnvironment(*this, {})->spec();
}

int64_t EnvironmentConfig::AgentRows() const {
  return FindEnvironment(id).make ? rows : rows * Spec().agent_count();
}

std::string EnvironmentConfig::FileName() const {
  std::string name = id;
  const auto part_of_a_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  };
  std::ranges::replace_if(name, std::not_fn(part_of_a_name), '-');
  return name;
}

std::unique_ptr<BatchEnvironment> MakeBatchEnvironment(const EnvironmentConfig& config,
                                                       BatchOptions options) {
  options.time_limit = config.time_limit;
  for (const WrapperConfig& wrapper : config.wrappers) {
    if (wrapper.name == "action_repeat") options.action_repeat = wrapper.count;
  }
  auto batch = FindEnvironment(config.id).make_batch(*config.arguments, options);
  for (const WrapperConfig& wrapper : config.wrappers)
    batch = wrapper.Wrap(std::move(batch), options);
  return batch;
}

}  // namespace weft
