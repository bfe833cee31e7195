// How long a phase of a step took, as a metric: generate_seconds, score_seconds, learn_seconds.
#pragma once

#include <chrono>
#include <string_view>

#include "dataflow/fragment.h"

namespace weft {

class PhaseTimer {
 public:
  PhaseTimer(std::string_view name, Ports& ports) : name_(name), ports_(ports) {}
  ~PhaseTimer() { ports_.Log(name_, std::chrono::duration<double>(Clock::now() - start_).count()); }
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  const std::string_view name_;
  Ports& ports_;
  const Clock::time_point start_ = Clock::now();
};

}  // namespace weft
