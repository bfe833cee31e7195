#include "dataflow/runtime.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/text.h"
#include "dataflow/coordinator.h"

namespace weft {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(100);
constexpr int kWaitMilliseconds = 50;

}  // namespace

Coordinator::Coordinator(const FragmentGraph& graph, const Placement& placement,
                         const RuntimeOptions& options, const Cut* resume)
    : graph_(graph), options_(options), resume_(resume) {
  engine_ = std::make_unique<Engine>(
      graph, placement,
      Engine::Options{.process = 0,
                      .incarnation = 0,
                      .coordinator = &bell_,
                      .metrics = [this](int node, int replica, std::string_view name,
                                        double value) { Metric(node, replica, name, value); },
                      .carrier = {}});
  if (resume != nullptr) engine_->RestoreLinks(*resume);
}

Coordinator::~Coordinator() = default;

void Coordinator::Metric(int node, int replica, std::string_view name, double value) {
  if (!options_.on_metric) return;
  const std::lock_guard lock(callbacks_);
  options_.on_metric(MetricEvent{graph_.nodes()[node].name, replica, name, value});
}

RunResult Coordinator::Run() {
  last_progress_ = Clock::now();
  if (engine_->runners().size() == 1) {
    RunInline();
  } else {
    RunThreads();
  }
  engine_->Close();
  Control& control = engine_->control();
  if (control.failed()) std::rethrow_exception(control.error());
  result_.stop_reason = control.stop_reason();
  return std::move(result_);
}

void Coordinator::RunInline() {
  Control& control = engine_->control();
  Runner& runner = *engine_->runners().front();
  // The clock is looked at often enough to notice an interruption within the poll interval,
  // whatever a step costs.
  int sweeps = 0, sweeps_per_poll = 1;
  try {
    runner.Prepare(resume_);
    while (true) {
      const bool moved = runner.Sweep();
      if (control.closing()) break;
      if (!moved && control.parking() && runner.Quiet()) {
        if (TakeCut()) break;
        continue;
      }
      if (!moved) {
        throw Error(ErrorCode::kInternal, "deadlock: no fragment can step" + engine_->Describe());
      }
      if (++sweeps < sweeps_per_poll) continue;
      sweeps = 0;
      const auto before = last_poll_;
      Poll();
      if (last_poll_ == before) {
        sweeps_per_poll = std::min(2 * sweeps_per_poll, 256);
      } else {
        sweeps_per_poll = 1;
      }
    }
  } catch (const Closed&) {
    // Prepare kept the error already.
  } catch (...) {
    control.Fail(std::current_exception());
  }
  control.Close();
  runner.Finish();
}

void Coordinator::RunThreads() {
  Control& control = engine_->control();
  engine_->StartThreads(resume_);
  try {
    while (!control.closing()) {
      bell_.Clear();
      Poll();
      if (engine_->Quiet()) {
        if (TakeCut()) break;
        continue;
      }
      WatchForStall();
      bell_.Wait(kWaitMilliseconds);
    }
  } catch (...) {
    control.Fail(std::current_exception());
  }
}

void Coordinator::Poll() {
  const auto now = Clock::now();
  if (now - last_poll_ < kPollInterval) return;
  last_poll_ = now;
  if (!options_.interrupted || result_.interrupted) return;
  const std::lock_guard lock(callbacks_);
  if (options_.interrupted()) {
    result_.interrupted = true;
    engine_->control().RequestCheckpoint();
    engine_->control().RequestStop("interrupted");
  }
}

bool Coordinator::TakeCut() {
  Control& control = engine_->control();
  const bool checkpoint = control.TakeCheckpointRequest();
  const bool stop = control.stop_requested();
  Cut cut;
  engine_->SaveReplicas(&cut);
  for (const Engine::Edge& edge : engine_->edges()) {
    const LinkContents contents = edge.link->Contents();
    if (!contents.messages.empty()) cut[edge.channel] = PackMessages(contents);
  }
  if (checkpoint && options_.on_checkpoint) {
    const std::lock_guard lock(callbacks_);
    options_.on_checkpoint(cut);
  }
  last_progress_ = Clock::now();
  if (stop) {
    result_.cut = std::move(cut);
    return true;
  }
  control.EndPark();
  return false;
}

void Coordinator::WatchForStall() {
  const auto now = Clock::now();
  const int64_t steps = engine_->Steps();
  if (steps != last_steps_) {
    last_steps_ = steps;
    last_progress_ = now;
    reported_ = false;
  }
  if (reported_ || now - last_progress_ < std::chrono::duration<double>(options_.stall_seconds))
    return;
  reported_ = true;
  LogWarn("nothing has moved for " + HumanSeconds(options_.stall_seconds) +
          "; who waits for whom:" + engine_->Describe());
}

RunResult Run(const FragmentGraph& graph, const Placement& placement, const RuntimeOptions& options,
              const Cut* resume) {
  graph.Validate();
  Coordinator coordinator(graph, placement, options, resume);
  return coordinator.Run();
}

}  // namespace weft
