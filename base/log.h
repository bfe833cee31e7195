// What a run says: text for people (info, warn, error), and metrics as numbers (console line, metrics.jsonl, TensorBoard).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

enum class LogLevel { kInfo, kWarn, kError };

// Text log to stderr, with level and time since start; lines of several threads and the progress line never mix.
void LogText(LogLevel level, std::string_view text);
inline void LogInfo(std::string_view text) { LogText(LogLevel::kInfo, text); }
inline void LogWarn(std::string_view text) { LogText(LogLevel::kWarn, text); }
inline void LogError(std::string_view text) { LogText(LogLevel::kError, text); }
// Quiet hides info lines and progress (bench, --json). Process-wide.
void SetLogQuiet(bool quiet);

struct Metric {
  std::string_view name;  // snake_case, the same word as in the docs
  double value;
};

// Where metrics of one run go: appends one JSON object per Write to metrics.jsonl, scalars to a TensorBoard event file.
// A full disk never throws: it warns once and goes on. Thread-safe.
class MetricsWriter {
 public:
  // directory must exist. Both files are opened for append; on resume, lines past `step` in metrics.jsonl are dropped.
  MetricsWriter(const std::string& directory, int64_t resume_step);
  ~MetricsWriter();
  // step: environment steps so far.
  void Write(int64_t step, double wall_seconds, const std::vector<Metric>& metrics);
  void Flush();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The live line: redrawn in place on a terminal, one line per interval elsewhere; nothing when quiet.
//   ppo HalfCheetah-v5  412,000/1,000,000  41%  38.2k steps/s  eta 15s  return 1843.2  policy_loss -0.012 ...
class ProgressLine {
 public:
  ProgressLine(std::string title, int64_t total_steps, double interval_seconds = 1.0);
  ~ProgressLine();
  // Cheap when called before the interval is over. shown: metrics to print after the rate and the return.
  void Update(int64_t steps, double episode_return, const std::vector<Metric>& shown);
  void Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft
