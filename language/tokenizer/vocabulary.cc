#include "language/tokenizer/vocabulary.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace weft {

uint64_t HashBytes(std::string_view bytes) {
  constexpr uint64_t kFactor = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
  uint64_t hash = bytes.size() * kFactor;
  const auto mix = [&](uint64_t word) {
    hash = (hash ^ word) * kFactor;
    hash ^= hash >> 32;
  };
  uint64_t word = 0;
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::memcpy(&word, bytes.data() + i, 8);
    mix(word);
  }
  if (i < bytes.size()) {
    word = 0;
    std::memcpy(&word, bytes.data() + i, bytes.size() - i);
    mix(word);
  }
  return hash;
}

void Vocabulary::Reserve(size_t tokens, size_t bytes) {
  bytes_.reserve(bytes);
  spans_.reserve(tokens);
  slots_.assign(std::bit_ceil(2 * tokens + 16), Slot{});
}

size_t Vocabulary::SlotOf(std::string_view text, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  for (size_t slot = (hash >> 32) & mask;; slot = (slot + 1) & mask) {
    const Slot& entry = slots_[slot];
    if (entry.id == kNone || (entry.hash == static_cast<uint32_t>(hash) && Text(entry.id) == text))
      return slot;
  }
}

void Vocabulary::Grow() {
  std::vector<Slot> old(std::max<size_t>(64, 2 * slots_.size()), Slot{});
  old.swap(slots_);
  for (const Slot& entry : old) {
    if (entry.id == kNone) continue;
    slots_[SlotOf(Text(entry.id), HashBytes(Text(entry.id)))] = entry;
  }
}

Vocabulary::Added Vocabulary::Add(std::string_view text, int32_t id) {
  WEFT_CHECK_GE(id, 0);
  if (2 * static_cast<size_t>(count_ + 1) > slots_.size()) Grow();
  const uint64_t hash = HashBytes(text);
  const size_t slot = SlotOf(text, hash);
  if (slots_[slot].id != kNone) return {slots_[slot].id, false};
  if (Has(id)) return {id, false};
  WEFT_CHECK_LT(bytes_.size() + text.size(), size_t{kAbsent}) << "bytes of a vocabulary";
  if (id >= size()) spans_.resize(static_cast<size_t>(id) + 1);
  spans_[static_cast<size_t>(id)] = {static_cast<uint32_t>(bytes_.size()),
                                     static_cast<uint32_t>(text.size())};
  bytes_.append(text);
  slots_[slot] = {static_cast<uint32_t>(hash), id};
  ++count_;
  longest_ = std::max(longest_, text.size());
  return {id, true};
}

int32_t Vocabulary::Find(std::string_view text) const {
  return slots_.empty() ? kNone : slots_[SlotOf(text, HashBytes(text))].id;
}

bool Vocabulary::Has(int32_t id) const {
  return id >= 0 && id < size() && spans_[static_cast<size_t>(id)].size != kAbsent;
}

std::string_view Vocabulary::Text(int32_t id) const {
  if (!Has(id)) return {};
  const Span& span = spans_[static_cast<size_t>(id)];
  return std::string_view(bytes_).substr(span.begin, span.size);
}

}  // namespace weft
