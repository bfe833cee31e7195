// Remembers the tokens of words: a text has few different ones. Bounded; when it is full it begins
// anew.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "language/tokenizer/merge_symbols.h"
#include "language/tokenizer/vocabulary.h"

namespace weft {

class WordCache {
 public:
  static constexpr size_t kMaxWordBytes = 128;

  // False when the word is not there. The span holds until the next Insert.
  bool Find(std::string_view word, uint64_t hash, std::span<const Token>& tokens) const {
    if (slots_.empty()) return false;
    const Slot& slot = slots_[SlotOf(word, hash)];
    if (slot.word_bytes == 0) return false;
    tokens = {tokens_.data() + slot.token, slot.tokens};
    return true;
  }

  // The word is not there; 1 to kMaxWordBytes bytes.
  void Insert(std::string_view word, uint64_t hash, std::span<const Token> tokens) {
    if (count_ >= kMaxWords) {
      count_ = 0;
      slots_.assign(kFirstSlots, Slot{});
      bytes_.clear();
      tokens_.clear();
    }
    if (2 * (count_ + 1) > slots_.size()) Grow();
    Slot& slot = slots_[SlotOf(word, hash)];
    slot.hash = hash;
    slot.word = static_cast<uint32_t>(bytes_.size());
    slot.word_bytes = static_cast<uint16_t>(word.size());
    slot.token = static_cast<uint32_t>(tokens_.size());
    slot.tokens = static_cast<uint16_t>(tokens.size());
    bytes_.insert(bytes_.end(), word.begin(), word.end());
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    ++count_;
  }

 private:
  static constexpr size_t kFirstSlots = 1 << 10;
  static constexpr size_t kMaxWords = 1 << 16;
  struct Slot {
    uint64_t hash = 0;
    uint32_t word = 0, token = 0;
    uint16_t word_bytes = 0, tokens = 0;  // word_bytes 0: free
  };

  size_t SlotOf(std::string_view word, uint64_t hash) const {
    const size_t mask = slots_.size() - 1;
    for (size_t at = (hash >> 32) & mask;; at = (at + 1) & mask) {
      const Slot& slot = slots_[at];
      if (slot.word_bytes == 0) return at;
      if (slot.hash == hash && slot.word_bytes == word.size() &&
          std::memcmp(bytes_.data() + slot.word, word.data(), word.size()) == 0) {
        return at;
      }
    }
  }

  void Grow() {
    std::vector<Slot> old(slots_.empty() ? kFirstSlots : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.word_bytes == 0) continue;
      slots_[SlotOf({bytes_.data() + slot.word, slot.word_bytes}, slot.hash)] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::vector<char> bytes_;
  std::vector<Token> tokens_;
  size_t count_ = 0;
};

}  // namespace weft
