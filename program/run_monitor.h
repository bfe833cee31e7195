// Listens to the metrics of a run: keeps the step count and the recent return, draws the progress
// line, writes metrics.jsonl and the TensorBoard file at a steady number of steps, and remembers
// the evaluations.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/log.h"
#include "dataflow/runtime.h"

namespace weft {

class RunMonitor {
 public:
  // directory: the run's; resume_step and earlier_seconds: of the checkpoint that the run goes on
  // from.
  RunMonitor(const std::string& directory, const std::string& title, int64_t total_steps,
             int64_t resume_step, double earlier_seconds);

  void OnMetric(const MetricEvent& event);
  void Finish();

  int64_t steps() const { return steps_; }
  double wall_seconds() const;      // of training, over all starts of the run
  double steps_per_second() const;  // of this start
  double last_return() const { return last_return_; }

 private:
  struct Mean {
    double sum = 0;
    int64_t count = 0;
  };
  void Write();
  std::vector<Metric> Shown() const;

  MetricsWriter writer_;
  ProgressLine progress_;
  const int64_t total_steps_, first_step_;
  const double earlier_seconds_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  int64_t steps_ = 0, written_ = 0;
  double last_return_;
  std::map<std::string, double, std::less<>> latest_;
  std::map<std::string, Mean, std::less<>> means_;  // of what happens many times between two writes
};

}  // namespace weft
