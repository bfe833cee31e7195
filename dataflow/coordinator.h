// The main process's side of a run: decides when to park, takes cuts, calls the run's callbacks,
// watches for stalls, and ends the run. With one runner and no workers it runs inline, on the
// runner's own thread.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "dataflow/engine.h"
#include "dataflow/runtime.h"
#include "dataflow/workers.h"

namespace weft {

class Coordinator {
 public:
  Coordinator(const FragmentGraph& graph, const Placement& placement, const RuntimeOptions& options,
              const Cut* resume);
  ~Coordinator();

  RunResult Run();

 private:
  using Clock = std::chrono::steady_clock;

  void RunInline();
  void RunThreads();
  // Polls `interrupted`; begins a park when something asks for one.
  void Poll();
  // Everything is quiet: takes the cut, calls back; true when the run is over.
  bool TakeCut();
  bool Quiet() const;
  void WatchForStall();
  void Metric(int node, int replica, std::string_view name, double value);

  const FragmentGraph& graph_;
  const RuntimeOptions& options_;
  const Cut* const resume_;
  std::mutex callbacks_;  // metrics come from every runner's thread
  PollBell bell_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Workers> workers_;  // null in a run of one process
  RunResult result_;
  Clock::time_point last_poll_{}, last_progress_{};
  int64_t last_steps_ = -1;
  bool reported_ = false;      // the stall that is going on
  Clock::time_point asked_{};  // workers for reports
};

}  // namespace weft
