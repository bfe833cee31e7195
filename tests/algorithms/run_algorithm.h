// Runs a config given as text, for tests of whole algorithms.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include "actors/evaluator.h"
#include "algorithms/algorithm.h"
#include "base/file.h"
#include "dataflow/runtime.h"
#include "program/run_directory.h"

namespace weft {

struct AlgorithmRun {
  RunResult result;
  uint64_t hash = 0;  // of the policy at the end
  int64_t steps = 0;
  std::vector<Cut> checkpoints;
};

inline std::unique_ptr<Algorithm> AlgorithmFrom(const std::string& yaml,
                                                const std::vector<std::string>& overrides = {}) {
  ConfigSource source = ConfigSource::Text(yaml, "test");
  for (const auto& assignment : overrides) source.Override(assignment);
  return LoadAlgorithm(source);
}

inline TensorMap PolicyIn(const Cut& cut) {
  return PolicyOf(Checkpoint{.cut = cut});
}

inline AlgorithmRun RunAlgorithm(const Algorithm& algorithm, const Cut* resume = nullptr) {
  FragmentGraph graph;
  algorithm.Build(graph);
  graph.Validate();
  const Placement placement = DistributionPolicies().At(algorithm.placement)(
      graph,
      {.threads = algorithm.ThreadBudget(), .processes = static_cast<int>(algorithm.processes)});
  AlgorithmRun run;
  RuntimeOptions options;
  options.on_checkpoint = [&](const Cut& cut) { run.checkpoints.push_back(cut); };
  const std::string config =
      std::filesystem::temp_directory_path() / ("weft_test_" + std::to_string(getpid()) + ".yaml");
  if (placement.processes > 1) WriteFileAtomic(config, ToYaml(algorithm));
  options.worker_command = [&](int process) {
    return std::vector<std::string>{WEFT_BINARY, "worker", config, std::to_string(process)};
  };
  run.result = Run(graph, placement, options, resume);
  std::filesystem::remove(config);
  run.hash = Hash(PolicyIn(run.result.cut));
  run.steps = StepsOf(run.result.cut);
  return run;
}

inline Evaluation EvaluateRun(const Algorithm& algorithm, const AlgorithmRun& run,
                              int64_t episodes = 50) {
  const auto agent = algorithm.MakeAgent(std::min<int64_t>(episodes, 10));
  agent->Load(PolicyIn(run.result.cut));
  return Evaluate(algorithm.environment, *agent, {.episodes = episodes, .rows = 10, .seed = 7},
                  nullptr);
}

}  // namespace weft
