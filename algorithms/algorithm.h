// An algorithm is a method of training (learners/method.h) that acts in environments. This header
// holds what all share, and the registry. An algorithm file reads Config, Agent, Learner, Build,
// register, in that order.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "actors/agent.h"
#include "actors/evaluator.h"
#include "base/config.h"
#include "base/registry.h"
#include "dataflow/fragment_graph.h"
#include "dataflow/placement.h"
#include "environments/environment_config.h"
#include "learners/learner.h"
#include "learners/method.h"

namespace weft {

struct EvaluationConfig : Config {
  int64_t every = 0;  // steps; 0: ten times over the run
  int64_t episodes = 20;
  int64_t rows = 10;
  int64_t final_episodes = 100;

  void Fields(FieldVisitor& v) override;
};

class Algorithm : public Method {
 public:
  int64_t actors = 0;
  std::string init_from;
  double stop_at_return = std::numeric_limits<double>::infinity();
  EnvironmentConfig environment;
  EvaluationConfig evaluation;
  int64_t video_every = 0;

  void Fields(FieldVisitor& v) override;
  void Check() const override;

  std::string Subject() const override { return environment.id; }
  // The acting side alone, for evaluation, export and use in other programs.
  virtual std::unique_ptr<Agent> MakeAgent(int64_t rows) const = 0;

  // Actor replicas: `actors` when given, else what the placement makes of threads and processes;
  // divides the rows.
  int ActorReplicas() const;
  int64_t EvaluationEvery() const;
  AgentFactory Agents() const;
  LearnerOptions LearnerSettings() const;
  // The evaluator fragment and its edge from learner.snapshot; with stop_at_return also the edge
  // back.
  void AddEvaluator(FragmentGraph& graph) const;
  bool StopsAtReturn() const { return stop_at_return < std::numeric_limits<double>::infinity(); }
};

struct AlgorithmEntry {
  std::string summary;  // one line for `weft list algorithms`
  std::function<std::unique_ptr<Algorithm>()> make;
};
Registry<AlgorithmEntry>& Algorithms();

#define WEFT_REGISTER_ALGORITHM(Class, name, summary)     \
  [[maybe_unused]] static const bool registered_##Class = \
      ::weft::Algorithms().Add(name, {summary, [] { return std::make_unique<Class>(); }})

// Reads the algorithm's name, makes its config and parses the source into it.
std::unique_ptr<Algorithm> LoadAlgorithm(const ConfigSource& source);

}  // namespace weft
