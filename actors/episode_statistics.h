// Counts episodes: return and length of each environment's running episode, and of those that
// ended. The only place that does.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/tensor_map.h"

namespace weft {

class EpisodeStatistics {
 public:
  // agents: rows of an environment.
  explicit EpisodeStatistics(int64_t rows, int64_t agents = 1);

  // Takes the leaves reward, type of a time step [N]. A kFirst row starts an episode; its reward
  // belongs to none, nor do those of absent agents (environments/multi_agent.h).
  void Observe(const TensorMap& step);

  struct Episode {
    int64_t environment;
    double episode_return;  // of all agents together
    int64_t length;
    std::vector<double> agent_returns;  // empty when there is but one
  };
  // Episodes that ended since the last Clear, in order of step and environment.
  const std::vector<Episode>& ended() const { return ended_; }
  void Clear() { ended_.clear(); }

  TensorMap Save() const;
  void Load(const TensorMap& state);

 private:
  void ObserveEnvironment(size_t environment, const float* reward, const uint8_t* type);

  const size_t agents_;
  std::vector<double> returns_;   // [N]
  std::vector<uint8_t> there_;    // [N], the agent takes part
  std::vector<int64_t> lengths_;  // of each environment
  std::vector<Episode> ended_;
};

}  // namespace weft
