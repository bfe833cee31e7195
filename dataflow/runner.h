// One scheduler loop: steps whichever of its replicas has all needed inputs and room on its
// outputs, in member order. The same loop serves the calling thread of a serial run, a thread, and
// the threads of a worker process.
//
// A replica that waits in AllReduce must not hold up the others of its runner, so a runner with
// several members gives each member of a Reduce group a thread of its own and passes a baton:
// exactly one of them moves at any time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "dataflow/bell.h"
#include "dataflow/control.h"
#include "dataflow/fragment_graph.h"
#include "dataflow/ports.h"
#include "dataflow/reduce.h"
#include "dataflow/runtime.h"

namespace weft {

// Takes metrics from any runner's thread.
using MetricSink = std::function<void(int node, int replica, std::string_view name, double value)>;

class Baton;

class Member final : public PortsOwner {
 public:
  Member(const FragmentGraph& graph, int node, int replica, RunnerBell* bell, Control* control,
         const MetricSink* metrics);
  ~Member() override;

  // PortsOwner, called from inside a step.
  void AllReduce(std::span<Tensor> tensors) override;
  void Log(std::string_view name, double value) override {
    (*metrics_)(node, replica, name, value);
  }
  void RequestCheckpoint() override { control_->RequestCheckpoint(); }
  void Stop(std::string_view reason) override {
    stopped = true;
    control_->RequestStop(reason);
  }

  // "learner[0], after step 12: waits for ..."; any thread.
  std::string Describe() const;
  void DestroyFragment();

  enum class Phase : uint8_t { kNew, kIdle, kStepping, kReducing };
  const int node, replica, replicas;
  const std::string label, key;  // "learner[0]", "learner.0"
  const std::function<std::unique_ptr<Fragment>(const Replica&)> make;
  std::unique_ptr<ReplicaPorts> ports;
  std::unique_ptr<Fragment> fragment;
  ReduceGroup* group = nullptr;
  std::unique_ptr<Baton> baton;
  std::atomic<uint32_t> needs{0};
  std::atomic<int64_t> steps{0};  // begun or done
  std::atomic<Phase> phase{Phase::kNew};
  bool started = false;    // Start or Load was called
  bool suspended = false;  // its baton's thread waits inside a step
  bool stopped = false;  // called Stop: begins no further step, but to complete a call of its group

 private:
  RunnerBell* const bell_;
  Control* const control_;
  const MetricSink* const metrics_;
  mutable std::mutex destruction_;  // of the fragment, which Describe may be asking
};

class Runner {
 public:
  struct Options {
    int threads = 1;      // kernel threads, this one counted
    int spin = 0;         // RunnerBell
    int incarnation = 0;  // of the process
  };
  Runner(Options options, Control* control);
  ~Runner();

  RunnerBell* bell() { return &bell_; }
  void Add(std::unique_ptr<Member> member) { members_.push_back(std::move(member)); }
  const std::vector<std::unique_ptr<Member>>& members() const { return members_; }

  // Makes the fragments, on the thread that will step them; resume may be null, else every member
  // is loaded from it.
  void Prepare(const Cut* resume);
  // Steps, starts or resumes every member that can, once; false when none could.
  bool Sweep();
  // No member is inside a step or unstarted. Only after Sweep returned false.
  bool Quiet() const;
  // A whole thread's life: Prepare, Sweep until closing, and the destruction of the fragments.
  // Errors go to Control.
  void Run(const Cut* resume);
  // Lets replicas that wait in AllReduce throw Closed, then destroys the fragments.
  void Finish();

  // The park epoch at which the runner was last quiet, 0 while it moves.
  uint64_t quiet_epoch() const { return quiet_epoch_.load(std::memory_order_seq_cst); }

 private:
  enum class Action { kStart, kStep };
  bool MayBegin(const Member& member) const;
  void Begin(Member& member, Action action);
  void Invoke(Member& member, Action action);
  void Continue(Member& member);
  void Finished(Member& member);
  void RestartCutLinks();

  const Options options_;
  Control* const control_;
  RunnerBell bell_;
  std::unique_ptr<ThreadPool> pool_;
  Context context_;
  std::vector<std::unique_ptr<Member>> members_;
  std::atomic<uint64_t> quiet_epoch_{0};
  uint32_t restarted_links_ = 0;  // Control::cut_links() when all own links were restarted
};

// Adds "learner[0], step 12" to whatever is being thrown and keeps it as the run's error; Closed is
// no error.
void KeepCurrentException(const Member& member, Control* control);

}  // namespace weft
