#include "program/run_monitor.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft {
namespace {

constexpr int64_t kWritesPerRun = 200;

// What the line on the terminal has beside the return: these in their order, then losses and rates
// of phases, as far as there is room.
constexpr std::string_view kShown[] = {"reward",    "evaluation_reward", "accuracy",
                                       "kl",        "answer_tokens",     "entropy",
                                       "approx_kl", "clip_fraction",     "explained_variance"};
constexpr std::string_view kShownEndings[] = {"loss", "_tokens_per_second"};

bool IsEpisodeMetric(std::string_view name) {
  return name.starts_with("episode_");
}

}  // namespace

RunMonitor::RunMonitor(const std::string& directory, const std::string& title, int64_t total_steps,
                       int64_t resume_step, double earlier_seconds)
    : writer_(directory, resume_step),
      progress_(title, total_steps),
      total_steps_(total_steps),
      first_step_(resume_step),
      earlier_seconds_(earlier_seconds),
      steps_(resume_step),
      written_(resume_step),
      last_return_(std::numeric_limits<double>::quiet_NaN()) {}

void RunMonitor::OnMetric(const MetricEvent& event) {
  if (event.name == "steps") {
    steps_ = static_cast<int64_t>(event.value);
    if (steps_ - written_ >= std::max<int64_t>(1, total_steps_ / kWritesPerRun) ||
        steps_ >= total_steps_)
      Write();
    return;
  }
  if (IsEpisodeMetric(event.name)) {
    auto mean = means_.find(event.name);
    if (mean == means_.end()) mean = means_.emplace(std::string(event.name), Mean{}).first;
    mean->second.sum += event.value;
    ++mean->second.count;
    return;
  }
  const auto latest = latest_.find(event.name);
  if (latest == latest_.end()) {
    latest_.emplace(std::string(event.name), event.value);
  } else {
    latest->second = event.value;
  }
}

void RunMonitor::Write() {
  std::vector<Metric> metrics;
  for (auto& [name, mean] : means_) {
    if (mean.count == 0) continue;
    const double value = mean.sum / static_cast<double>(mean.count);
    if (name == "episode_return") {
      last_return_ = value;
      metrics.push_back({"episodes", static_cast<double>(mean.count)});
    }
    metrics.push_back({name, value});
    mean = {};
  }
  for (const auto& [name, value] : latest_) metrics.push_back({name, value});
  metrics.push_back({"steps_per_second", steps_per_second()});
  writer_.Write(steps_, wall_seconds(), metrics);
  progress_.Update(steps_, last_return_, Shown());
  // An evaluation is reported once, at the first write after it.
  std::erase_if(latest_, [](const auto& entry) { return entry.first.starts_with("evaluation_"); });
  written_ = steps_;
}

std::vector<Metric> RunMonitor::Shown() const {
  std::vector<Metric> shown;
  for (const std::string_view name : kShown) {
    if (const auto found = latest_.find(name); found != latest_.end())
      shown.push_back({found->first, found->second});
  }
  for (const std::string_view ending : kShownEndings) {
    for (const auto& [name, value] : latest_) {
      const bool rate = ending != "loss";
      if (name.ends_with(ending) && !(rate && name.starts_with("evaluation_"))) {
        shown.push_back({name, value});
      }
    }
  }
  return shown;
}

void RunMonitor::Finish() {
  if (written_ < steps_ || !latest_.empty()) Write();
  progress_.Finish();
  writer_.Flush();
}

double RunMonitor::wall_seconds() const {
  return earlier_seconds_ +
         std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

double RunMonitor::steps_per_second() const {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  return static_cast<double>(steps_ - first_step_) / seconds;
}

}  // namespace weft
