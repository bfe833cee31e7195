// What the runners of one process share with the thread that coordinates them: closing, parking for
// a cut, the first error. Checked between any two steps, so everything that is asked often is one
// atomic load.
//
// Parking. A cut is taken when no fragment is inside a step anywhere. Runners stop beginning steps
// as soon as a park is asked for, with one exception: while some replicas wait in AllReduce for
// others (pending), everybody goes on, as the others may need messages to get there. Whenever the
// last such call completes, the park gets a new epoch. A runner is quiet at an epoch when it has
// looked at all its members in that epoch and none is inside a step or may begin one. All quiet at
// the same epoch, with nothing pending, is a consistent cut: only a replica inside a step can make
// a call pending, and completing the call ends the epoch.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "dataflow/bell.h"

namespace weft {

class Control {
 public:
  // root: this process decides when to park (the main process); others are told (SetPark).
  Control(bool root, Bell* coordinator) : root_(root), coordinator_(coordinator) {}

  void AddRunner(Bell* bell) { runners_.push_back(bell); }  // before any runner runs

  bool closing() const { return closing_.load(std::memory_order_acquire); }
  uint64_t park_epoch() const { return park_.load(std::memory_order_seq_cst); }  // 0: no park
  bool parking() const { return park_.load(std::memory_order_acquire) != 0; }
  bool pending() const { return pending_.load(std::memory_order_seq_cst) != 0; }
  // Grows whenever links were cut (link.h): runners then restart those of theirs.
  uint32_t cut_links() const { return cut_links_.load(std::memory_order_acquire); }

  void Close();      // every runner ends before its next step, every waiting call throws Closed
  void BeginPark();  // root only; nothing when a park is going on
  void EndPark();
  void RenewPark();              // root only: a new epoch, if a park is going on
  void SetPark(uint64_t epoch);  // not root: a park or its next epoch; nothing is pending any more
  void SetPending();             // not root: calls are pending until the next SetPark
  void PendingBegan();           // root: the first replica waits in a call
  void PendingEnded();           // root: the last replica came
  void LinksCut();
  void WakeCoordinator() { coordinator_->Ring(); }

  // Fragments' requests; the first reason to stop is kept. In the root they begin a park at once.
  void RequestStop(std::string_view reason);
  void RequestCheckpoint();
  // Takes the request away.
  bool TakeCheckpointRequest() { return checkpoint_.exchange(false); }
  bool stop_requested() const { return stop_.load(std::memory_order_acquire); }
  std::string stop_reason() const;

  void Fail(std::exception_ptr error);  // the first is kept; closes
  std::exception_ptr error() const;
  bool failed() const { return failed_.load(std::memory_order_acquire); }

 private:
  void RingRunners();

  const bool root_;
  Bell* const coordinator_;
  std::vector<Bell*> runners_;
  std::atomic<bool> closing_{false}, stop_{false}, checkpoint_{false}, failed_{false};
  std::atomic<uint64_t> park_{0};
  std::atomic<int> pending_{0};
  std::atomic<uint32_t> cut_links_{0};
  mutable std::mutex mutex_;  // guards what follows and every change of park_
  uint64_t last_epoch_ = 0;
  std::string stop_reason_;
  std::exception_ptr error_;
};

}  // namespace weft
