// Evaluates snapshots of a policy: whole episodes on environments of their own seeds, with the mode
// of the policy.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/agent.h"
#include "dataflow/fragment.h"
#include "environments/environment_config.h"
#include "environments/row_activity.h"

namespace weft {

struct EvaluationOptions {
  int64_t episodes = 20;
  int64_t rows = 8;  // environments stepped together
  uint64_t seed = 0;
  bool explore = false;  // true: sample from the policy
  // Steps until an episode is cut off where the environment has no time limit: the policy may walk
  // in circles for ever.
  int64_t longest = 10000;
};

struct Evaluation {
  // Of the episode returns, those of all agents added up; std with n in the denominator.
  double mean = 0, std = 0;
  double mean_length = 0;
  int64_t n = 0;
  // Mean return of each agent; empty when there is but one.
  std::vector<double> agent_means;
};

// Runs exactly options.episodes episodes: episode e is the (e / rows)-th of row e mod rows, so long
// and short episodes count alike. The same snapshot, seed and options give the same result,
// whatever the threads.
Evaluation Evaluate(const EnvironmentConfig& environment, Agent& agent,
                    const EvaluationOptions& options, ThreadPool* pool,
                    RowActivity* activity = nullptr);

// input `snapshot`: a policy to evaluate or to film, as it says itself (rollout_leaves.h), version
// = steps of the run; output `result` (optional), of an evaluation: leaves mean, std, n. Logs
// evaluation_return, evaluation_return_std, evaluation_length, evaluation_steps, and of several
// agents evaluation_return.NAME. Videos become run_folder/videos/STEPS.gif.
class Evaluator final : public Fragment {
 public:
  enum Input { kSnapshot };
  enum Output { kResult };
  static PortList Ports();

  Evaluator(const Replica& replica, const EnvironmentConfig& environment, AgentFactory make_agent,
            const EvaluationOptions& options, std::string run_folder);

  PortSet Needs() const override { return {kSnapshot}; }
  void Step(weft::Ports& ports) override;
  std::string Activity() const override { return activity_.Text(); }

 private:
  const EnvironmentConfig& environment_;
  const AgentFactory make_agent_;
  const EvaluationOptions options_;
  const std::string run_folder_;
  ThreadPool* pool_;
  const EnvironmentSpec spec_;
  std::unique_ptr<Agent> agent_;
  RowActivity activity_;
};

}  // namespace weft
