// Counts episodes: return and length of each row's running episode, and of those that ended. The
// only place that does.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/tensor_map.h"

namespace weft {

class EpisodeStatistics {
 public:
  explicit EpisodeStatistics(int64_t rows);

  // Takes the leaves reward, type of a time step [N]. A kFirst row starts an episode; its reward
  // belongs to none.
  void Observe(const TensorMap& step);

  struct Episode {
    int64_t row;
    double episode_return;
    int64_t length;
  };
  // Episodes that ended since the last Clear, in order of step and row.
  const std::vector<Episode>& ended() const { return ended_; }
  void Clear() { ended_.clear(); }

  TensorMap Save() const;
  void Load(const TensorMap& state);

 private:
  std::vector<double> returns_;   // [N]
  std::vector<int64_t> lengths_;  // [N]
  std::vector<Episode> ended_;
};

}  // namespace weft
