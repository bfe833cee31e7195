// How fast environments step: batches under random actions, resets included, beside a bare loop
// over the same physics.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

struct EnvironmentFigure {
  std::string id;
  int threads = 1;
  int64_t rows = 0;  // environments
  // Of an environment, all its agents together: median of five samples, undisturbed (see the
  // source).
  double steps_per_second = 0;
  double spread = 0;  // (largest - smallest) / median of them
  // The bare loop, sampled in turn with the batch: mj_step with the same states and controls for
  // MuJoCo tasks, plain arithmetic without rows, checks and time steps for CartPole-v1; 0 where
  // there is none.
  double bare_steps_per_second = 0;
  double ratio = 0;  // median of batch over bare, pair by pair
};

// Stepped one by one as they are ready (environments/vector_environment.h), by as many threads,
// half of `rows` environments received at a time. Takes half a second.
EnvironmentFigure BenchVectorEnvironment(const std::string& id, int threads);

// only: ids, or all registered environments when empty. Takes about a second for each.
std::vector<EnvironmentFigure> BenchEnvironments(const std::vector<std::string>& only, int threads);

}  // namespace weft
