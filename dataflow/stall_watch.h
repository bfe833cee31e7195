// Reports of runs in which nothing moves.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "dataflow/engine.h"

namespace weft {

// members: a line for each replica, as Engine::Describe writes them.
void ReportStall(double seconds, const std::string& members);

// Watches an engine whose one runner has the calling thread, from a thread of its own: reports once
// when no step was begun for so many seconds, and again only after something has moved.
class StallWatch {
 public:
  StallWatch(const Engine& engine, double seconds);
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

 private:
  void Watch();

  const Engine& engine_;
  const double seconds_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace weft
