// How one thread of a run wakes another: whoever changes something that another thread may wait for
// rings its bell. A waiter notes the epoch, looks whether it can go on, and waits only while the
// epoch is still the same, so that no ring is ever lost.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft {

class Bell {
 public:
  virtual ~Bell() = default;
  virtual void Ring() = 0;  // any thread; never blocks
};

// Wakes a runner: a short spin, then a futex.
class RunnerBell final : public Bell {
 public:
  // spin: looks at the epoch before sleeping, 0 when threads outnumber the cores.
  explicit RunnerBell(int spin) : spin_(spin) {}
  void Ring() override;
  uint32_t epoch() const { return epoch_.load(std::memory_order_seq_cst); }
  void Wait(uint32_t seen);  // until the epoch differs from seen

 private:
  const int spin_;
  alignas(64) std::atomic<uint32_t> epoch_{0};
  std::atomic<bool> sleeping_{false};
};

// Wakes a thread that waits in poll(): a counter that is a file descriptor.
class PollBell final : public Bell {
 public:
  PollBell();  // throws kIo when there is no descriptor left
  ~PollBell() override;
  PollBell(const PollBell&) = delete;
  PollBell& operator=(const PollBell&) = delete;
  void Ring() override;
  void Clear();  // before looking for work
  int descriptor() const { return descriptor_; }
  void Wait(int milliseconds) const;  // until rung or the time is over

 private:
  int descriptor_;
  std::atomic<bool> rung_{false};
};

}  // namespace weft
