#include "dataflow/control.h"

namespace weft {

void Control::RingRunners() {
  for (Bell* bell : runners_) bell->Ring();
}

void Control::Close() {
  closing_.store(true, std::memory_order_seq_cst);
  RingRunners();
}

void Control::BeginPark() {
  {
    const std::lock_guard lock(mutex_);
    if (park_.load() != 0) return;
    park_.store(++last_epoch_, std::memory_order_seq_cst);
  }
  RingRunners();
  WakeCoordinator();
}

void Control::RenewPark() {
  {
    const std::lock_guard lock(mutex_);
    if (park_.load() == 0) return;
    park_.store(++last_epoch_, std::memory_order_seq_cst);
  }
  RingRunners();
}

void Control::EndPark() {
  {
    const std::lock_guard lock(mutex_);
    park_.store(0, std::memory_order_seq_cst);
  }
  RingRunners();
}

void Control::SetPark(uint64_t epoch) {
  {
    const std::lock_guard lock(mutex_);
    pending_.store(0, std::memory_order_seq_cst);
    park_.store(epoch, std::memory_order_seq_cst);
  }
  RingRunners();
}

void Control::SetPending() {
  pending_.store(1, std::memory_order_seq_cst);
  RingRunners();
}

void Control::PendingBegan() {
  pending_.fetch_add(1, std::memory_order_seq_cst);
  if (parking()) {
    RingRunners();
    WakeCoordinator();
  }
}

void Control::PendingEnded() {
  {
    const std::lock_guard lock(mutex_);
    // The epoch changes before the call counts as complete, so that nobody sees the old epoch with
    // nothing pending.
    if (park_.load() != 0) park_.store(++last_epoch_, std::memory_order_seq_cst);
    pending_.fetch_sub(1, std::memory_order_seq_cst);
  }
  if (parking()) {
    RingRunners();
    WakeCoordinator();
  }
}

void Control::LinksCut() {
  cut_links_.fetch_add(1, std::memory_order_release);
  RingRunners();
}

void Control::RequestStop(std::string_view reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!stop_.load()) stop_reason_ = reason;
    stop_.store(true, std::memory_order_release);
  }
  if (root_) BeginPark();
  WakeCoordinator();
}

void Control::RequestCheckpoint() {
  checkpoint_.store(true);
  if (root_) BeginPark();
  WakeCoordinator();
}

std::string Control::stop_reason() const {
  const std::lock_guard lock(mutex_);
  return stop_reason_;
}

void Control::Fail(std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    if (error_ == nullptr) error_ = error;
    failed_.store(true, std::memory_order_release);
  }
  Close();
  WakeCoordinator();
}

std::exception_ptr Control::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

}  // namespace weft
