#include "rlhf/reward_monitor.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace weft {
namespace {

std::string Number(double x) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3f", x);
  return text;
}

}  // namespace

RewardMonitor::RewardMonitor(std::vector<std::string> names)
    : names_(std::move(names)), warned_(names_.size()) {}

RewardMonitor::Window RewardMonitor::Over(size_t which, int64_t first) const {
  Window window;
  double squares = 0;
  for (int64_t step = first; step < first + kWindow; ++step) {
    const double x = means_[static_cast<size_t>(step) * (names_.size() + 1) + which];
    window.mean += x / kWindow;
    squares += x * x / kWindow;
  }
  window.variance = std::max(0.0, squares - window.mean * window.mean);
  return window;
}

std::string RewardMonitor::Add(double sum, const std::vector<double>& watched) {
  if (names_.empty()) return "";
  means_.push_back(sum);
  means_.insert(means_.end(), watched.begin(), watched.end());
  ++steps_;
  const int64_t now = steps_ - kWindow;
  if (now < kWindow) return "";
  std::string warning;
  for (size_t i = 0; i < names_.size(); ++i) {
    if (warned_[i] != 0) continue;
    Window best = Over(i + 1, 0);
    int64_t when = 0;
    for (int64_t first = 1; first + kWindow <= now; ++first) {
      const Window window = Over(i + 1, first);
      if (window.mean <= best.mean) continue;
      best = window;
      when = first;
    }
    const Window last = Over(i + 1, now);
    const double error = std::sqrt((best.variance + last.variance) / kWindow);
    const double then_sum = Over(0, when).mean, now_sum = Over(0, now).mean;
    if (now_sum <= then_sum || best.mean - last.mean <= 4 * error) continue;
    warned_[i] = 1;
    if (!warning.empty()) warning += "; ";
    warning += "the rewards rose from " + Number(then_sum) + " to " + Number(now_sum) + " while " +
               names_[i] + ", which only watches, fell from " + Number(best.mean) + " (steps " +
               std::to_string(when + 1) + " to " + std::to_string(when + kWindow) + ") to " +
               Number(last.mean) +
               ": the policy exploits them; a larger beta, a smaller learning_rate or kl_stop "
               "holds it";
  }
  return warning;
}

TensorMap RewardMonitor::Save() const {
  TensorMap state;
  state.Set("means", Tensor::From<double>({std::ssize(means_)}, means_));
  state.Set("warned", Tensor::From<uint8_t>({std::ssize(warned_)}, warned_));
  return state;
}

void RewardMonitor::Load(const TensorMap& state) {
  const auto means = state.At("means").data<double>();
  const auto warned = state.At("warned").data<uint8_t>();
  if (std::ssize(warned) != std::ssize(names_)) return;
  means_.assign(means.begin(), means.end());
  warned_.assign(warned.begin(), warned.end());
  steps_ = std::ssize(means_) / (std::ssize(names_) + 1);
}

}  // namespace weft
