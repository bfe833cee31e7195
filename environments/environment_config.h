// The `environment` section of a run's config: which environment, how many rows, and what is
// wrapped around it.
//
//   environment:
//     id: HalfCheetah-v5     # or, of Gymnasium: python: "MODULE:NAME"
//     rows: 16
//     arguments: {ctrl_cost_weight: 0.05}
//     wrappers: [{name: action_repeat, count: 2}, clip_action]
//     normalise_observation: {enabled: true}
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "base/config.h"
#include "environments/batch_environment.h"
#include "environments/wrapper_config.h"

namespace weft {

// Running mean and deviation of observations or of discounted returns. The statistics belong to the
// learner, which publishes them with the parameters; trajectories and messages hold raw values.
struct NormaliserConfig : Config {
  void Fields(FieldVisitor& visitor) override;

  bool enabled = false;
  double clip = 10;       // the normalised value is clipped to [-clip, clip]
  double epsilon = 1e-8;  // added to the variance
};

struct EnvironmentConfig : Config {
  EnvironmentConfig() = default;
  EnvironmentConfig(const EnvironmentConfig& other);
  EnvironmentConfig& operator=(const EnvironmentConfig& other);
  EnvironmentConfig(EnvironmentConfig&&) = default;
  EnvironmentConfig& operator=(EnvironmentConfig&&) = default;

  void Fields(FieldVisitor& visitor) override;
  void Check() const override;

  // Of the batch with its wrappers around it, what MakeBatchEnvironment makes.
  EnvironmentSpec Spec() const;
  // Rows of the batch: those of all agents of `rows` environments.
  int64_t AgentRows() const;
  // The id as part of a file name: "dm_control/walker" -> "dm_control-walker".
  std::string FileName() const;

  // Another environment with its default arguments; throws Error(kConfig) for an unknown id.
  void SetId(const std::string& new_id);

  std::string id;
  std::unique_ptr<Config>
      arguments;     // keyword arguments of `id`, of the type its registry entry makes
  int64_t rows = 1;  // over all replicas together
  int64_t time_limit =
      -1;  // steps of the environment until truncation; -1: the registered one; 0: none
  std::deque<WrapperConfig> wrappers;  // the first is nearest to the environment
  NormaliserConfig normalise_observation, normalise_reward;
};

// The batch with its wrappers around it. options.time_limit and action_repeat are taken from the
// config. Throws ConfigProblem("environment.wrappers") for wrappers that do not fit the environment
// (scale_action without bounds).
std::unique_ptr<BatchEnvironment> MakeBatchEnvironment(const EnvironmentConfig& config,
                                                       BatchOptions options);

}  // namespace weft
