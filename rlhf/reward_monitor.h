// Whether a policy exploits what it is rewarded for (Gao et al. 2023): the sum of rewards goes on
// rising while one that only watches, with weight 0, falls.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/tensor_map.h"

namespace weft {

class RewardMonitor {
 public:
  static constexpr int64_t kWindow = 10;  // steps whose means are compared

  // names: of the rewards that watch.
  explicit RewardMonitor(std::vector<std::string> names);

  // Means of a step: of the sum, and of each that watches. Returns what to warn of: once for each
  // of them, when over the last kWindow steps it is below its best by more than four standard
  // errors though the sum is above that of then. Else "".
  std::string Add(double sum, const std::vector<double>& watched);

  TensorMap Save() const;
  // What was saved with another number of rewards that watch is let go: a run may be resumed with
  // other rewards.
  void Load(const TensorMap& state);

 private:
  struct Window {
    double mean = 0, variance = 0;
  };
  Window Over(size_t which, int64_t first) const;

  std::vector<std::string> names_;
  std::vector<double> means_;  // [steps, 1 + names]: the sum first
  std::vector<uint8_t> warned_;
  int64_t steps_ = 0;
};

}  // namespace weft
