// The tokens of a tokenizer: id to text and back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// 64 bits that depend on every byte; for tables in memory, the same on every machine.
uint64_t HashBytes(std::string_view bytes);

class Vocabulary {
 public:
  static constexpr int32_t kNone = -1;

  void Reserve(size_t tokens, size_t bytes);
  // Gives id a text. Returns the id that has the text already, or id; false in `added` when it was
  // there or id is taken. The caller bounds ids: memory grows with the largest.
  struct Added {
    int32_t id;
    bool added;
  };
  Added Add(std::string_view text, int32_t id);

  int32_t Find(std::string_view text) const;  // kNone when there is no such token
  bool Has(int32_t id) const;
  // "" for an id that is no token.
  std::string_view Text(int32_t id) const;
  // One more than the largest id.
  int32_t size() const { return static_cast<int32_t>(spans_.size()); }
  int32_t count() const { return count_; }
  size_t longest() const { return longest_; }  // bytes

 private:
  struct Span {
    uint32_t begin = 0, size = kAbsent;
  };
  static constexpr uint32_t kAbsent = UINT32_MAX;
  struct Slot {
    uint32_t hash;
    int32_t id = kNone;
  };
  size_t SlotOf(std::string_view text, uint64_t hash) const;  // its slot or the free one for it
  void Grow();

  std::string bytes_;
  std::vector<Span> spans_;
  std::vector<Slot> slots_;  // a power of two, at most half full
  int32_t count_ = 0;
  size_t longest_ = 0;
};

}  // namespace weft
