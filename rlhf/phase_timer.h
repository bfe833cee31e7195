// How long a phase of a step took, and how many tokens of answers it dealt with in a second, as
// metrics: generate_seconds and generate_tokens_per_second.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "dataflow/fragment.h"

namespace weft {

class PhaseTimer {
 public:
  PhaseTimer(const std::string& phase, Ports& ports) : phase_(phase), ports_(ports) {}
  ~PhaseTimer() {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    ports_.Log(phase_ + "_seconds", seconds);
    if (tokens_ > 0) {
      ports_.Log(phase_ + "_tokens_per_second", static_cast<double>(tokens_) / seconds);
    }
  }
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;

  void AddTokens(int64_t tokens) { tokens_ += tokens; }

 private:
  using Clock = std::chrono::steady_clock;
  const std::string phase_;
  Ports& ports_;
  int64_t tokens_ = 0;
  const Clock::time_point start_ = Clock::now();
};

}  // namespace weft
