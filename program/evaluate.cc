// weft evaluate: episodes with the policy of a run.
#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/evaluator.h"
#include "program/commands.h"
#include "program/policy.h"

namespace weft {

int EvaluateRun(const EvaluateOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const int64_t rows = std::min<int64_t>(options.episodes, 16);
  Policy policy = Policy::Load(options.run, rows);
  const Algorithm& algorithm = policy.algorithm();
  ThreadPool pool(algorithm.ThreadBudget());
  const Context context{.pool = &pool};
  const ContextScope scope(context);
  const uint64_t seed = options.seed >= 0 ? static_cast<uint64_t>(options.seed) : algorithm.seed;
  const Evaluation result = Evaluate(
      algorithm.environment, policy.agent(),
      {.episodes = options.episodes, .rows = rows, .seed = seed, .explore = options.explore},
      &pool);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  nlohmann::ordered_json agents = nlohmann::ordered_json::object();
  for (size_t agent = 0; agent < result.agent_means.size(); ++agent)
    agents[policy.spec().agents[agent].name] = result.agent_means[agent];
  if (options.json) {
    nlohmann::ordered_json line{
        {"run", options.run},
        {"steps", policy.steps()},
        {"evaluation", {{"mean", result.mean}, {"std", result.std}, {"n", result.n}}},
        {"mean_length", result.mean_length},
        {"seed", seed},
        {"wall_seconds", seconds}};
    if (!agents.empty()) line["evaluation"]["agents"] = agents;
    fmt::print("{}\n", line.dump());
  } else {
    fmt::print(
        "{} {}, trained for {} steps\nreturn {:.2f} +- {:.2f} over {} episodes of {:.1f} steps, "
        "{}\n",
        algorithm.algorithm, algorithm.environment.id, policy.steps(), result.mean, result.std,
        result.n, result.mean_length,
        options.explore ? "sampled actions" : "deterministic actions");
    for (const auto& [name, mean] : agents.items())
      fmt::print("  {}: {:.2f}\n", name, mean.get<double>());
  }
  return 0;
}

}  // namespace weft
