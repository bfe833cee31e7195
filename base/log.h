// What a run says: text for people (info, warn, error), and metrics as numbers (console line,
// metrics.jsonl, TensorBoard).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

enum class LogLevel { kInfo, kWarn, kError };

// Text log to stderr, with level and time since start; lines of several threads and the progress
// line never mix.
void LogText(LogLevel level, std::string_view text);
inline void LogInfo(std::string_view text) {
  LogText(LogLevel::kInfo, text);
}
inline void LogWarn(std::string_view text) {
  LogText(LogLevel::kWarn, text);
}
inline void LogError(std::string_view text) {
  LogText(LogLevel::kError, text);
}
// Quiet hides info lines and progress (bench, --json). Process-wide.
void SetLogQuiet(bool quiet);

struct Metric {
  std::string_view name;  // snake_case, the same word as in the docs
  double value;
};

// Where metrics of one run go: each Write appends one JSON object to metrics.jsonl
//   {"step":4096,"wall_seconds":0.52,"policy_loss":-0.0123,"value_loss":null}
// (null for what is not finite) and one event to events.out.tfevents.weft. A full disk never
// throws: it warns once and goes on, and no half line is left behind. Thread-safe.
class MetricsWriter {
 public:
  // directory must exist. Both files are opened for append; what they hold past resume_step is
  // dropped, so that a resumed run does not say a step twice. Throws Error(kIo).
  MetricsWriter(const std::string& directory, int64_t resume_step);
  ~MetricsWriter();
  // step: environment steps so far, never falling.
  void Write(int64_t step, double wall_seconds, const std::vector<Metric>& metrics);
  // Waits until the disk has it all: a checkpoint should not be newer than its metrics.
  void Flush();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The live line: redrawn in place on a terminal, one line per interval elsewhere; nothing when
// quiet.
//   ppo HalfCheetah-v5  412,000/1,000,000  41%  38.2k steps/s  eta 15s  return 1843.2  policy_loss
//   -0.012
// One at a time in a process. Not thread-safe, but text logged meanwhile by any thread goes above
// it.
class ProgressLine {
 public:
  ProgressLine(std::string title, int64_t total_steps, double interval_seconds = 1.0);
  ~ProgressLine();  // leaves the last line drawn on the terminal
  // Cheap when called before the interval is over. The rate counts from the steps of the first
  // call. episode_return: NaN while no episode has ended. shown: metrics to print after the return.
  void Update(int64_t steps, double episode_return, const std::vector<Metric>& shown);
  // Draws what the last Update said, with the rate of the whole run.
  void Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft
