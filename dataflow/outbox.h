// Messages for other processes that runners' threads make (metrics, contributions to a sum): kept
// until the thread that talks to processes takes them.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "dataflow/bell.h"

namespace weft {

class Outbox {
 public:
  struct Item {
    int process;  // that it goes to
    std::vector<uint8_t> message;
  };
  explicit Outbox(Bell* bell) : bell_(bell) {}
  void Put(int process, std::vector<uint8_t> message) {
    {
      const std::lock_guard lock(mutex_);
      messages_.push_back({process, std::move(message)});
    }
    bell_->Ring();
  }
  std::vector<Item> Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(messages_, {});
  }

 private:
  Bell* const bell_;
  std::mutex mutex_;
  std::vector<Item> messages_;
};

}  // namespace weft
