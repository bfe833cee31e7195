#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "base/text.h"
#include "dataflow/stall_watch.h"

namespace weft {

void ReportStall(double seconds, const std::string& members) {
  LogWarn("nothing has moved for " + HumanSeconds(seconds) + "; who waits for whom:" + members);
}

StallWatch::StallWatch(const Engine& engine, double seconds)
    : engine_(engine), seconds_(seconds), thread_([this] { Watch(); }) {}

StallWatch::~StallWatch() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void StallWatch::Watch() {
  using Clock = std::chrono::steady_clock;
  const std::chrono::duration<double> look(std::clamp(seconds_ / 4, 0.01, 1.0));
  int64_t steps = engine_.Steps();
  auto moved = Clock::now();
  bool reported = false;
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, look, [this] { return over_; })) {
    const auto now = Clock::now();
    if (const int64_t now_steps = engine_.Steps(); now_steps != steps) {
      steps = now_steps;
      moved = now;
      reported = false;
    } else if (!reported && now - moved >= std::chrono::duration<double>(seconds_)) {
      ReportStall(seconds_, engine_.Describe());
      reported = true;
    }
  }
}

}  // namespace weft
