#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/check.h"
#include "dataflow/runner.h"
#include "dataflow/wiring.h"

namespace weft {

// A thread that runs one replica's actions and gives the baton back when an action ends or waits.
class Baton {
 public:
  Baton(std::function<void()> action, const Context& context)
      : action_(std::move(action)), thread_([this, context] { Loop(context); }) {}
  ~Baton() {
    ending_ = true;
    Give(Holder::kThread);
    thread_.join();
  }

  // Passes the baton; true when the action ended, false when it waits. Rethrows what it threw.
  bool Pass() {
    ended_ = false;
    Give(Holder::kThread);
    Await(Holder::kRunner);
    if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
    return ended_;
  }
  // On the thread, inside the action: gives the baton back until it is passed again.
  void Yield() {
    Give(Holder::kRunner);
    Await(Holder::kThread);
  }

 private:
  enum class Holder { kRunner, kThread };

  void Give(Holder to) {
    const std::lock_guard lock(mutex_);
    holder_ = to;
    changed_.notify_one();
  }
  void Await(Holder me) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this, me] { return holder_ == me; });
  }
  void Loop(const Context& context) {
    const ContextScope scope(context);
    while (true) {
      Await(Holder::kThread);
      if (ending_) return;
      try {
        action_();
      } catch (...) {
        error_ = std::current_exception();
      }
      ended_ = true;
      Give(Holder::kRunner);
    }
  }

  const std::function<void()> action_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Holder holder_ = Holder::kRunner;  // guarded by mutex_; the holder alone touches what follows
  bool ending_ = false, ended_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

Member::Member(const FragmentGraph& graph, int node_in, int replica_in, RunnerBell* bell,
               Control* control, const MetricSink* metrics)
    : node(node_in),
      replica(replica_in),
      replicas(graph.nodes()[node_in].replicas),
      label(ReplicaLabel(graph, node_in, replica_in)),
      key(ReplicaKey(graph, node_in, replica_in)),
      make(graph.nodes()[node_in].factory.make),
      bell_(bell),
      control_(control),
      metrics_(metrics) {}

Member::~Member() = default;

void Member::AllReduce(std::span<Tensor> tensors) {
  if (replicas == 1) return;
  WEFT_CHECK(group != nullptr)
      << "AllReduce needs a Reduce edge that joins the replicas of this fragment";
  group->Contribute(replica, tensors, bell_);
  if (!group->Waiting(replica)) return;
  phase.store(Phase::kReducing, std::memory_order_relaxed);
  while (true) {
    const uint32_t seen = bell_->epoch();
    if (!group->Waiting(replica)) break;
    if (control_->closing()) throw Closed();
    if (baton != nullptr) {
      baton->Yield();
    } else {
      bell_->Wait(seen);
    }
  }
  phase.store(Phase::kStepping, std::memory_order_relaxed);
}

std::string Member::Describe() const {
  std::string text =
      label + ", after step " + std::to_string(steps.load(std::memory_order_relaxed)) + ": ";
  switch (phase.load(std::memory_order_acquire)) {
    case Phase::kNew:
      return text + "is being made or started";
    case Phase::kStepping: {
      const std::lock_guard lock(destruction_);
      const std::string activity = fragment != nullptr ? fragment->Activity() : "";
      return text + "is inside its step" + (activity.empty() ? "" : ": " + activity);
    }
    case Phase::kReducing:
      return text + "waits in AllReduce for " + group->Missing();
    case Phase::kIdle:
      break;
  }
  const std::string reason = ports->WaitsFor(needs.load(std::memory_order_relaxed));
  return text + (reason.empty() ? "can step" : reason);
}

void Member::DestroyFragment() {
  const std::lock_guard lock(destruction_);
  fragment.reset();
}

Runner::Runner(Options options, Control* control)
    : options_(options), control_(control), bell_(options.spin) {}

Runner::~Runner() = default;

void Runner::Prepare(const Cut* resume) {
  context_ = CurrentContext();
  context_.pool = nullptr;
  if (options_.threads > 1) {
    pool_ = std::make_unique<ThreadPool>(options_.threads);
    context_.pool = pool_.get();
  }
  const ContextScope scope(context_);
  for (const auto& member : members_) {
    try {
      const Replica replica{.index = member->replica,
                            .count = member->replicas,
                            .incarnation = options_.incarnation,
                            .context = context_};
      member->fragment = member->make(replica);
      WEFT_CHECK(member->fragment != nullptr)
          << "the factory of " << member->label << " made nothing";
      if (resume != nullptr) {
        const auto state = resume->find(member->key);
        if (state == resume->end()) {
          throw Error(ErrorCode::kCorrupt,
                      "the saved run has no state for it: it was saved by another graph");
        }
        member->fragment->Load(state->second);
        member->started = true;
        Finished(*member);
      }
    } catch (...) {
      KeepCurrentException(*member, control_);
      throw Closed();
    }
    if (members_.size() > 1 && member->group != nullptr) {
      member->baton = std::make_unique<Baton>(
          [this, m = member.get()] { Invoke(*m, m->started ? Action::kStep : Action::kStart); },
          context_);
    }
  }
}

bool Runner::MayBegin(const Member& member) const {
  if (member.stopped) return member.group != nullptr && member.group->Wants(member.replica);
  return !control_->parking() || control_->pending();
}

bool Runner::Sweep() {
  const ContextScope scope(context_);
  if (restarted_links_ != control_->cut_links()) RestartCutLinks();
  bool moved = false;
  for (const auto& pointer : members_) {
    Member& member = *pointer;
    if (control_->closing()) return false;
    if (member.suspended) {
      if (member.group->Waiting(member.replica)) continue;
      Continue(member);
    } else if (!member.started) {
      Begin(member, Action::kStart);
    } else if (member.ports->Ready(member.needs.load(std::memory_order_relaxed)) &&
               MayBegin(member)) {
      Begin(member, Action::kStep);
    } else {
      continue;
    }
    moved = true;
  }
  return moved;
}

bool Runner::Quiet() const {
  for (const auto& member : members_) {
    if (member->suspended || !member->started) return false;
  }
  return true;
}

void Runner::Begin(Member& member, Action action) {
  if (quiet_epoch_.load(std::memory_order_relaxed) != 0)
    quiet_epoch_.store(0, std::memory_order_seq_cst);
  const int64_t step = member.steps.load(std::memory_order_relaxed);
  if (action == Action::kStep) member.steps.store(step + 1, std::memory_order_relaxed);
  member.phase.store(Member::Phase::kStepping, std::memory_order_release);
  if (member.baton != nullptr) {
    Continue(member);
    return;
  }
  try {
    Invoke(member, action);
    Finished(member);
  } catch (...) {
    KeepCurrentException(member, control_);
  }
}

void Runner::Invoke(Member& member, Action action) {
  if (action == Action::kStart) {
    member.ports->BeginStep(0);
    member.fragment->Start(*member.ports);
    member.ports->CheckPrimed();
  } else {
    member.ports->BeginStep(member.needs.load(std::memory_order_relaxed));
    member.fragment->Step(*member.ports);
  }
}

void Runner::Continue(Member& member) {
  try {
    member.suspended = !member.baton->Pass();
    if (!member.suspended) Finished(member);
  } catch (...) {
    member.suspended = false;
    KeepCurrentException(member, control_);
  }
}

// After Start, Load or a step.
void Runner::Finished(Member& member) {
  member.started = true;
  const PortSet needs = member.fragment->Needs();
  member.ports->CheckNeeds(needs);
  member.needs.store(needs.bits(), std::memory_order_relaxed);
  member.phase.store(Member::Phase::kIdle, std::memory_order_relaxed);
}

void Runner::RestartCutLinks() {
  const uint32_t cuts = control_->cut_links();
  bool all = true;
  for (const auto& member : members_) {
    if (member->suspended) {
      all = false;
    } else {
      member->ports->RestartCutLinks();
    }
  }
  if (all) restarted_links_ = cuts;
}

void Runner::Run(const Cut* resume) {
  try {
    Prepare(resume);
    while (!control_->closing()) {
      const uint32_t seen = bell_.epoch();
      const uint64_t park = control_->park_epoch();
      if (Sweep()) continue;
      if (park != 0 && quiet_epoch_.load(std::memory_order_relaxed) != park && Quiet()) {
        quiet_epoch_.store(park, std::memory_order_seq_cst);
        control_->WakeCoordinator();
      }
      bell_.Wait(seen);
    }
  } catch (const Closed&) {
    control_->Close();
  }
  Finish();
}

void Runner::Finish() {
  for (const auto& member : members_) {
    if (member->suspended) Continue(*member);
    member->baton.reset();
  }
  for (const auto& member : members_) member->DestroyFragment();
}

void KeepCurrentException(const Member& member, Control* control) {
  const std::string where =
      member.started
          ? member.label + ", step " + std::to_string(member.steps.load(std::memory_order_relaxed))
          : member.label + ", start";
  try {
    throw;
  } catch (const Closed&) {
    if (!control->closing()) control->Close();
  } catch (Error& error) {
    error.AddContext(where);
    control->Fail(std::current_exception());
  } catch (const std::exception& error) {
    control->Fail(
        std::make_exception_ptr(Error(ErrorCode::kInternal, where + ": " + error.what())));
  } catch (...) {
    control->Fail(std::make_exception_ptr(
        Error(ErrorCode::kInternal, where + ": an exception of unknown type")));
  }
}

}  // namespace weft
