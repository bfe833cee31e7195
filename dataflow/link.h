// Links: what the edges of a graph become when it runs. A link joins one writer replica to one
// reader replica and holds the messages that the reader has not read yet, in order; every contract
// is made of links (wiring.h). There is one writing and one reading thread, which may be the same;
// no call waits or, after warm-up, allocates.
//
// A link whose ends are in two processes has a half in each. The writer's half keeps every message
// until the reader has read it (Release), so the unread messages of a link are always known in one
// place: its writer's half.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "dataflow/bell.h"
#include "dataflow/message.h"

namespace weft {

// What a link holds between two steps.
struct LinkContents {
  uint64_t first = 0;  // messages read before these; newest-only: the number of the one message
  std::vector<Message> messages;  // oldest first
  int uses = 0;  // newest-only links: how often the reader has read the one message
};

class Link {
 public:
  // newest_only: a message replaces the one before, and the reader may read one max_lag + 1 times.
  Link(int capacity, bool newest_only, int max_lag);

  // Bells of the other end's threads, null when the other end is on the same thread.
  void SetBells(Bell* writer, Bell* reader);
  // The writer's half repeats the last message to a reader that began anew (docs/wire_format.md
  // says which do).
  void KeepLast() { keep_last_ = true; }

  // Writer.
  bool HasRoom() const {
    return newest_only_ ||
           tail_.load(std::memory_order_relaxed) - head_.load(std::memory_order_acquire) <
               capacity_;
  }
  void Push(Message message,
            uint64_t stamp);  // stamp: arrival order among links that share a counter
  uint64_t written() const { return tail_.load(std::memory_order_acquire); }

  // Reader.
  bool HasMessage() const {
    if (newest_only_) return NewestReadable();
    return tail_.load(std::memory_order_acquire) != head_.load(std::memory_order_relaxed);
  }
  uint64_t HeadStamp() const { return slots_[head_.load(std::memory_order_relaxed) & mask_].stamp; }
  const Message& Head() const {
    return slots_[head_.load(std::memory_order_relaxed) & mask_].message;
  }
  Message Pop();
  uint64_t read() const { return head_.load(std::memory_order_acquire); }

  // The writer's half of a link to another process: message number `index` (0 the first ever),
  // which is unread; and the news that the reader has read `count` messages. Called by the thread
  // that sends.
  const Message& At(uint64_t index) const { return slots_[index & mask_].message; }
  uint64_t StampAt(uint64_t index) const { return slots_[index & mask_].stamp; }
  void Release(uint64_t count);
  // The newest message, its stamp and its number (1 the first ever, 0 when there is none).
  uint64_t Newest(Message* message, uint64_t* stamp) const;
  // The reader's half of a newest-only link: the number is that of the writer's half.
  void PushNumbered(Message message, uint64_t number);

  bool newest_only() const { return newest_only_; }
  int capacity() const { return static_cast<int>(capacity_); }
  uint64_t unread() const { return written() - read(); }

  // Between steps of both ends.
  LinkContents Contents() const;
  void Restore(const LinkContents& contents, uint64_t stamp_base, bool has_writer);
  // Messages read; for newest-only links the number of the message read last, and how often it was.
  std::pair<uint64_t, int> ReadPosition() const {
    return newest_only_ ? std::pair(last_read(), uses()) : std::pair(read(), 0);
  }

  // The process at the other end died. The thread that talks to processes sets it and leaves the
  // link alone until the thread of the local end has called Restart, between two steps.
  void SetCut() { cut_.store(true, std::memory_order_release); }
  bool cut() const { return cut_.load(std::memory_order_acquire); }
  // Empty and numbered from 0; a half that keeps its last message then holds that.
  void Restart();

 private:
  struct Slot {
    Message message;
    uint64_t stamp = 0;
  };
  bool NewestReadable() const;
  uint64_t last_read() const { return last_read_.load(std::memory_order_relaxed); }
  int uses() const { return uses_.load(std::memory_order_relaxed); }

  const uint64_t capacity_;
  const bool newest_only_;
  const int max_lag_;
  uint64_t mask_;
  std::vector<Slot> slots_;
  Bell* writer_bell_ = nullptr;
  Bell* reader_bell_ = nullptr;
  bool keep_last_ = false;
  Message last_;
  bool has_last_ = false;
  std::atomic<bool> cut_{false};
  // Newest-only.
  mutable std::mutex newest_mutex_;  // guards slots_[0]
  std::atomic<uint64_t> last_read_{0};
  std::atomic<int> uses_{0};
  alignas(64) std::atomic<uint64_t> tail_{0};  // messages written
  alignas(64) std::atomic<uint64_t> head_{0};  // messages read
};

}  // namespace weft
