#include "base/log.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// The terminal or file behind stderr. Constant-initialised and never destroyed, so it works before
// main and while the process ends.
struct Console {
  std::mutex mutex;
  std::atomic<bool> quiet{false};
  char progress[512] = {};  // the line to redraw below text, empty when none is live
};
constinit Console console;

const Clock::time_point process_start = Clock::now();

bool IsTerminal() {
  return ::isatty(STDERR_FILENO) != 0;
}

size_t TerminalColumns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

// One call for the whole text, so that other processes on the same terminal do not cut it.
void WriteConsole(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count <= 0) return;  // nobody is left to tell
    text.remove_prefix(static_cast<size_t>(count));
  }
}

constexpr std::string_view kEraseLine = "\r\x1b[K";

// 1234567 -> "1,234,567".
std::string Grouped(int64_t value) {
  std::string digits = std::to_string(value);
  for (size_t i = digits.size(); i > 3 + (value < 0);) {
    i -= 3;
    digits.insert(i, ",");
  }
  return digits;
}

std::string ShortNumber(double value) {
  char text[32];
  const double magnitude = std::abs(value);
  const bool plain = magnitude == 0 || (magnitude >= 1e-3 && magnitude < 1e6);
  std::snprintf(text, sizeof(text), !plain ? "%.2e" : magnitude < 10 ? "%.4f" : "%.1f", value);
  return text;
}

}  // namespace

void SetLogQuiet(bool quiet) {
  console.quiet = quiet;
}

void LogText(LogLevel level, std::string_view text) {
  if (level == LogLevel::kInfo && console.quiet) return;
  static constexpr const char* kNames[] = {"info ", "warn ", "error"};
  char start[64];
  std::snprintf(start, sizeof(start), "%8.2fs %s ", Seconds(Clock::now() - process_start),
                kNames[static_cast<int>(level)]);
  std::string line = std::string(start).append(text) + "\n";
  const std::lock_guard lock(console.mutex);
  if (console.progress[0] != 0) line = std::string(kEraseLine) + line + console.progress;
  WriteConsole(line);
}

struct ProgressLine::State {
  std::string title;
  int64_t total_steps;
  double interval_seconds;
  bool terminal = IsTerminal();

  bool started = false;
  bool finished = false;
  Clock::time_point first_time, last_time;
  int64_t first_steps = 0, last_steps = 0;
  double rate = NAN;  // steps per second, smoothed over about five intervals
  int64_t steps = 0;
  double episode_return = NAN;
  std::string shown;

  std::string Line(double shown_rate, const std::string& time) const {
    std::string line = title + "  " + Grouped(steps);
    if (total_steps > 0) {
      char percent[16];
      std::snprintf(percent, sizeof(percent), "  %3.0f%%",
                    100 * static_cast<double>(steps) / static_cast<double>(total_steps));
      line += "/" + Grouped(total_steps) + percent;
    }
    line += "  " + (std::isfinite(shown_rate) ? HumanCount(shown_rate) : "-") + " steps/s";
    if (!time.empty()) line += "  " + time;
    if (!std::isnan(episode_return)) line += "  return " + ShortNumber(episode_return);
    return line + shown;
  }

  void Draw(std::string line, bool last) {
    if (console.quiet) return;
    const std::lock_guard lock(console.mutex);
    if (terminal) {
      // A line that wraps could not be redrawn in place.
      const size_t room = std::min(TerminalColumns() - 1, sizeof(console.progress) - 1);
      // What does not fit is left out whole.
      if (line.size() > room) line.resize(std::min(line.rfind("  ", room), room));
      console.progress[last ? 0 : line.copy(console.progress, room)] = 0;
      line.insert(0, kEraseLine);
    }
    WriteConsole(terminal && !last ? line : line + "\n");
  }
};

ProgressLine::ProgressLine(std::string title, int64_t total_steps, double interval_seconds)
    : state_(std::make_unique<State>()) {
  state_->title = std::move(title);
  state_->total_steps = total_steps;
  state_->interval_seconds = interval_seconds;
}

ProgressLine::~ProgressLine() {
  const std::lock_guard lock(console.mutex);
  if (console.progress[0] == 0) return;
  console.progress[0] = 0;
  WriteConsole("\n");
}

void ProgressLine::Update(int64_t steps, double episode_return, const std::vector<Metric>& shown) {
  State& s = *state_;
  const Clock::time_point now = Clock::now();
  if (!s.started) {
    s.started = true;
    s.first_time = s.last_time = now;
    s.first_steps = s.last_steps = steps;
  }
  s.steps = steps;
  s.episode_return = episode_return;
  s.shown.clear();
  for (const Metric& metric : shown) {
    s.shown.append("  ").append(metric.name).append(" ").append(ShortNumber(metric.value));
  }
  const double elapsed = Seconds(now - s.last_time);
  if (elapsed < s.interval_seconds || console.quiet) return;
  const double rate = static_cast<double>(steps - s.last_steps) / elapsed;
  s.rate = std::isnan(s.rate) ? rate : 0.8 * s.rate + 0.2 * rate;
  s.last_time = now;
  s.last_steps = steps;
  const double left = static_cast<double>(s.total_steps - steps) / s.rate;
  s.Draw(s.Line(s.rate, s.total_steps > 0 ? "eta " + HumanSeconds(std::max(left, 0.0)) : ""),
         false);
}

void ProgressLine::Finish() {
  State& s = *state_;
  if (!s.started || s.finished) return;
  s.finished = true;
  const double elapsed = Seconds(Clock::now() - s.first_time);
  const auto done = static_cast<double>(s.steps - s.first_steps);
  s.Draw(s.Line(elapsed > 0 ? done / elapsed : NAN, "in " + HumanSeconds(elapsed)), true);
}

}  // namespace weft
