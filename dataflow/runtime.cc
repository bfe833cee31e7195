#include "dataflow/runtime.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/text.h"
#include "dataflow/coordinator.h"
#include "dataflow/stall_watch.h"

namespace weft {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(100);
constexpr int kWaitMilliseconds = 50;
constexpr auto kReportTime = std::chrono::milliseconds(500);  // that workers have to answer

}  // namespace

Coordinator::Coordinator(const FragmentGraph& graph, const Placement& placement,
                         const RuntimeOptions& options, const Cut* resume)
    : graph_(graph), options_(options), resume_(resume) {
  const MetricSink metrics = [this](int node, int replica, std::string_view name, double value) {
    Metric(node, replica, name, value);
  };
  engine_ = std::make_unique<Engine>(
      graph, placement,
      Engine::Options{.process = 0,
                      .incarnation = 0,
                      .coordinator = &bell_,
                      .metrics = metrics,
                      .carrier = [this](int node, int, std::span<const Tensor> sum) {
                        workers_->SendSum(node, sum);
                      }});
  if (resume != nullptr) engine_->RestoreLinks(*resume);
  if (placement.processes > 1) {
    const auto perturbed = [this](int process, const std::string& reason) {
      const std::lock_guard lock(callbacks_);
      if (options_.on_perturbed) options_.on_perturbed(process, reason);
    };
    workers_ = std::make_unique<Workers>(graph, placement, options, engine_.get(),
                                         Workers::Hooks{metrics, perturbed}, &bell_, resume);
  }
}

Coordinator::~Coordinator() = default;

void Coordinator::Metric(int node, int replica, std::string_view name, double value) {
  if (!options_.on_metric) return;
  const std::lock_guard lock(callbacks_);
  options_.on_metric(MetricEvent{graph_.nodes()[node].name, replica, name, value});
}

RunResult Coordinator::Run() {
  last_progress_ = Clock::now();
  if (workers_ == nullptr && engine_->runners().size() == 1) {
    RunInline();
  } else {
    RunThreads();
  }
  if (workers_ != nullptr) workers_->Close();
  engine_->Close();
  Control& control = engine_->control();
  if (control.failed()) std::rethrow_exception(control.error());
  result_.stop_reason = control.stop_reason();
  result_.perturbed = workers_ != nullptr && workers_->perturbed();
  return std::move(result_);
}

void Coordinator::RunInline() {
  Control& control = engine_->control();
  Runner& runner = *engine_->runners().front();
  // The clock is looked at often enough to notice an interruption within the poll interval,
  // whatever a step costs.
  int sweeps = 0, sweeps_per_poll = 1;
  const StallWatch watch(*engine_, options_.stall_seconds);
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
      if (workers_ != nullptr) workers_->Service();
      Poll();
      if (Quiet()) {
        if (TakeCut()) break;
        continue;
      }
      WatchForStall();
      if (workers_ != nullptr) {
        workers_->Wait(kWaitMilliseconds);
      } else {
        bell_.Wait(kWaitMilliseconds);
      }
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

bool Coordinator::Quiet() const {
  return engine_->Quiet() &&
         (workers_ == nullptr || workers_->Quiet(engine_->control().park_epoch()));
}

bool Coordinator::TakeCut() {
  Control& control = engine_->control();
  Cut cut;
  if (workers_ != nullptr) {
    if (!workers_->TakeSnapshot(&cut)) return false;
  } else {
    engine_->SaveReplicas(&cut);
    for (const Engine::Edge& edge : engine_->edges()) {
      const LinkContents contents = edge.link->Contents();
      if (!contents.messages.empty()) cut[edge.channel] = PackMessages(contents);
    }
  }
  const bool checkpoint = control.TakeCheckpointRequest();
  const bool stop = control.stop_requested();
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
  const int64_t steps = engine_->Steps() + (workers_ != nullptr ? workers_->Steps() : 0);
  if (steps != last_steps_) {
    last_steps_ = steps;
    last_progress_ = now;
    reported_ = false;
    asked_ = {};
  }
  if (reported_ || now - last_progress_ < std::chrono::duration<double>(options_.stall_seconds))
    return;
  if (workers_ != nullptr) {
    if (asked_ == Clock::time_point{}) {
      asked_ = now;
      workers_->AskForReports();
    }
    if (now - asked_ < kReportTime && !workers_->AllReported()) return;
  }
  reported_ = true;
  ReportStall(options_.stall_seconds,
              engine_->Describe() + (workers_ != nullptr ? workers_->Reports() : ""));
}

RunResult Run(const FragmentGraph& graph, const Placement& placement, const RuntimeOptions& options,
              const Cut* resume) {
  graph.Validate();
  Coordinator coordinator(graph, placement, options, resume);
  return coordinator.Run();
}

}  // namespace weft
