// MetricsWriter: metrics.jsonl and the TensorBoard event file of a run.
#include <charconv>
#include <chrono>
#include <cmath>
#include <mutex>

#include "base/event_file.h"
#include "base/file.h"
#include "base/log.h"

namespace weft {
namespace {

constexpr std::string_view kLineStart = "{\"step\":";

void AppendNumber(double value, std::string& line) {
  if (!std::isfinite(value)) {
    line += "null";  // JSON has no NaN
    return;
  }
  char text[32];
  line.append(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

void AppendNumber(int64_t value, std::string& line) {
  char text[32];
  line.append(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

void AppendName(std::string_view name, std::string& line) {
  line += ",\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') line += '\\';
    line += static_cast<unsigned char>(c) < ' ' ? '_' : c;
  }
  line += "\":";
}

// How many bytes of metrics.jsonl are whole lines up to keep_step. Lines are in the order of steps,
// so the search goes backwards and stops at the first line to keep.
uint64_t BytesToKeep(const std::string& path, int64_t keep_step) {
  if (!FileExists(path)) return 0;
  const MappedFile map(path);
  const std::string_view bytes(reinterpret_cast<const char*>(map.bytes().data()),
                               map.bytes().size());
  size_t end = bytes.rfind('\n') + 1;  // npos + 1 is 0; a line that was cut short goes
  while (end > 0) {
    const size_t start = end == 1 ? 0 : bytes.rfind('\n', end - 2) + 1;
    const std::string_view line = bytes.substr(start, end - start);
    int64_t step = 0;
    if (line.starts_with(kLineStart) &&
        std::from_chars(line.data() + kLineStart.size(), line.data() + line.size(), step).ec ==
            std::errc() &&
        step <= keep_step) {
      break;
    }
    end = start;
  }
  return end;
}

}  // namespace

struct MetricsWriter::State {
  State(const std::string& directory, int64_t resume_step)
      : lines(directory + "/metrics.jsonl", BytesToKeep(directory + "/metrics.jsonl", resume_step)),
        events(directory + "/events.out.tfevents.weft", resume_step) {}

  void Warn(const std::string& path, const std::string& reason) {
    if (reason.empty() || warned) return;
    warned = true;
    LogWarn("cannot write " + path + ": " + reason + "; metrics are lost until there is room");
  }

  std::mutex mutex;
  AppendFile lines;
  EventFile events;
  std::string line;
  bool warned = false;
};

MetricsWriter::MetricsWriter(const std::string& directory, int64_t resume_step)
    : state_(std::make_unique<State>(directory, resume_step)) {}

MetricsWriter::~MetricsWriter() = default;

void MetricsWriter::Write(int64_t step, double wall_seconds, const std::vector<Metric>& metrics) {
  const std::lock_guard lock(state_->mutex);
  std::string& line = state_->line;
  line = kLineStart;
  AppendNumber(step, line);
  line += ",\"wall_seconds\":";
  AppendNumber(wall_seconds, line);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  state_->events.Begin(std::chrono::duration<double>(now).count(), step);
  for (const Metric& metric : metrics) {
    AppendName(metric.name, line);
    AppendNumber(metric.value, line);
    state_->events.Scalar(metric.name, metric.value);
  }
  line += "}\n";
  state_->Warn(state_->lines.path(), state_->lines.Append(line));
  state_->Warn("the TensorBoard event file", state_->events.End());
}

void MetricsWriter::Flush() {
  const std::lock_guard lock(state_->mutex);
  state_->Warn(state_->lines.path(), state_->lines.Sync());
  state_->Warn("the TensorBoard event file", state_->events.Sync());
}

}  // namespace weft
