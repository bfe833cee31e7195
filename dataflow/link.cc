#include "dataflow/link.h"

#include <bit>
#include <utility>

namespace weft {

Link::Link(int capacity, bool newest_only, int max_lag)
    : capacity_(newest_only ? 1 : static_cast<uint64_t>(capacity)),
      newest_only_(newest_only),
      max_lag_(max_lag),
      mask_(std::bit_ceil(capacity_) - 1),
      slots_(mask_ + 1) {}

void Link::SetBells(Bell* writer, Bell* reader) {
  writer_bell_ = writer;
  reader_bell_ = reader;
}

void Link::Push(Message message, uint64_t stamp) {
  if (keep_last_) {
    last_ = message;
    has_last_ = true;
  }
  const uint64_t tail = tail_.load(std::memory_order_relaxed);
  if (newest_only_) {
    const std::lock_guard lock(newest_mutex_);
    slots_[0] = {std::move(message), stamp};
    tail_.store(tail + 1, std::memory_order_release);
  } else {
    Slot& slot = slots_[tail & mask_];
    slot.message = std::move(message);
    slot.stamp = stamp;
    tail_.store(tail + 1, std::memory_order_release);
  }
  if (reader_bell_ != nullptr) reader_bell_->Ring();
}

Message Link::Pop() {
  if (newest_only_) {
    Message message;
    uint64_t stamp = 0;
    const uint64_t number = Newest(&message, &stamp);
    uses_.store(number == last_read() ? uses() + 1 : 1, std::memory_order_relaxed);
    last_read_.store(number, std::memory_order_relaxed);
    return message;
  }
  const uint64_t head = head_.load(std::memory_order_relaxed);
  Message message = std::move(slots_[head & mask_].message);
  head_.store(head + 1, std::memory_order_release);
  if (writer_bell_ != nullptr) writer_bell_->Ring();
  return message;
}

void Link::Release(uint64_t count) {
  uint64_t head = head_.load(std::memory_order_relaxed);
  if (count <= head || count > tail_.load(std::memory_order_acquire))
    return;  // old news, or none of ours
  for (; head < count; ++head) slots_[head & mask_].message = {};
  head_.store(count, std::memory_order_release);
  if (writer_bell_ != nullptr) writer_bell_->Ring();
}

void Link::PushNumbered(Message message, uint64_t number) {
  {
    const std::lock_guard lock(newest_mutex_);
    slots_[0].message = std::move(message);
    tail_.store(number, std::memory_order_release);
  }
  if (reader_bell_ != nullptr) reader_bell_->Ring();
}

uint64_t Link::Newest(Message* message, uint64_t* stamp) const {
  const std::lock_guard lock(newest_mutex_);
  *message = slots_[0].message;
  *stamp = slots_[0].stamp;
  return tail_.load(std::memory_order_relaxed);
}

bool Link::NewestReadable() const {
  const uint64_t number = tail_.load(std::memory_order_acquire);
  return number > 0 && (number != last_read() || uses() <= max_lag_);
}

LinkContents Link::Contents() const {
  LinkContents contents;
  if (newest_only_) {
    const uint64_t number = tail_.load(std::memory_order_acquire);
    contents.first = number;
    if (number > 0) contents.messages.push_back(slots_[0].message);
    contents.uses = number == last_read() ? uses() : 0;
    return contents;
  }
  contents.first = read();
  for (uint64_t i = contents.first; i < written(); ++i) contents.messages.push_back(At(i));
  return contents;
}

void Link::Restore(const LinkContents& contents, uint64_t stamp_base, bool has_writer) {
  if (newest_only_ && !contents.messages.empty() && contents.uses > 0) {
    last_read_ = 1;  // the number that the restored message gets
    uses_ = contents.uses;
  }
  if (!has_writer) return;
  for (const Message& message : contents.messages) Push(message, stamp_base++);
}

void Link::Restart() {
  for (Slot& slot : slots_) slot.message = {};
  head_.store(0, std::memory_order_relaxed);
  tail_.store(0, std::memory_order_relaxed);
  last_read_ = 0;
  uses_ = 0;
  if (has_last_) {
    slots_[0].message = last_;
    slots_[0].stamp = ~uint64_t{0};
    tail_.store(1, std::memory_order_relaxed);
  }
  cut_.store(false, std::memory_order_release);
  if (writer_bell_ != nullptr) writer_bell_->Ring();
  if (reader_bell_ != nullptr) reader_bell_->Ring();
}

}  // namespace weft
