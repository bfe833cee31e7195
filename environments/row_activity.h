// Which rows of a batch are inside their Reset or Step right now: what a report of a stall names
// when an environment hangs. Rows mark themselves without locks; anyone may ask, on any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace weft {

class RowActivity {
 public:
  // From now on rows 0 to `rows` - 1 of a batch mark themselves. For a batch that is being made.
  void Watch(const std::string& id, int64_t first_row, int64_t rows, uint64_t seed);

  // "Hopper-v5, row 3 (seed 7)", the first few of them; "" when no row is busy.
  std::string Text() const;

  // Marks a row while it lives.
  class Busy {
   public:
    Busy(RowActivity& activity, int64_t row) : mark_(activity.busy_[static_cast<size_t>(row)]) {
      mark_.store(1, std::memory_order_relaxed);
    }
    ~Busy() { mark_.store(0, std::memory_order_relaxed); }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    std::atomic<uint8_t>& mark_;
  };

 private:
  mutable std::mutex mutex_;  // of all but the marks
  std::vector<std::atomic<uint8_t>> busy_;
  std::string id_;
  int64_t first_row_ = 0;
  uint64_t seed_ = 0;
};

}  // namespace weft
