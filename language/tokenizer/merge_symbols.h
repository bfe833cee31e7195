// The loop of byte-pair encoding: of all neighbours that may merge, the pair of lowest rank merges,
// the leftmost of equals, until none may. Short words scan their ranks; long ones keep a heap, so
// that time is O(n log n) whatever the text is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace weft {

// A token of a word, or a part of one while it is merged: bytes [begin, end) of the word.
struct Token {
  int32_t id;
  uint32_t begin, end;
};

struct Merge {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t rank = kNone;
  int32_t id = 0;
};

// Buffers that one thread reuses from word to word.
struct MergeScratch {
  std::vector<Merge> merges;  // of each symbol with the one behind it
  std::vector<uint32_t> previous, next;
  std::vector<uint64_t> heap;  // rank, then position
};

// Merges symbols in place. find(left, right) gives the Merge of two neighbours.
template <class Find>
void MergeSymbols(std::vector<Token>& symbols, MergeScratch& scratch, const Find& find) {
  constexpr size_t kScanned = 32;
  size_t count = symbols.size();
  if (count < 2) return;
  scratch.merges.resize(count);
  for (size_t i = 0; i + 1 < count; ++i) scratch.merges[i] = find(symbols[i], symbols[i + 1]);
  scratch.merges[count - 1] = {};

  if (count <= kScanned) {
    auto* merges = scratch.merges.data();
    while (true) {
      size_t best = 0;
      for (size_t i = 1; i + 1 < count; ++i) {
        if (merges[i].rank < merges[best].rank) best = i;
      }
      if (merges[best].rank == Merge::kNone) break;
      symbols[best] = {merges[best].id, symbols[best].begin, symbols[best + 1].end};
      std::copy(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 2,
                symbols.begin() + static_cast<std::ptrdiff_t>(count),
                symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
      std::copy(merges + best + 2, merges + count, merges + best + 1);
      --count;
      merges[best] = best + 1 < count ? find(symbols[best], symbols[best + 1]) : Merge{};
      if (best > 0) merges[best - 1] = find(symbols[best - 1], symbols[best]);
    }
    symbols.resize(count);
    return;
  }

  constexpr uint32_t kEnd = UINT32_MAX, kGone = UINT32_MAX - 1;
  auto& heap = scratch.heap;
  auto& merges = scratch.merges;
  heap.clear();
  scratch.previous.resize(count);
  scratch.next.resize(count);
  const auto entry = [&](uint32_t at) { return (uint64_t{merges[at].rank} << 32) | at; };
  for (uint32_t i = 0; i < count; ++i) {
    scratch.previous[i] = i == 0 ? kEnd : i - 1;
    scratch.next[i] = i + 1 == count ? kEnd : i + 1;
    if (merges[i].rank != Merge::kNone) heap.push_back(entry(i));
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto refresh = [&](uint32_t at) {
    const uint32_t right = scratch.next[at];
    merges[at] = right == kEnd ? Merge{} : find(symbols[at], symbols[right]);
    if (merges[at].rank == Merge::kNone) return;
    heap.push_back(entry(at));
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    const uint64_t top = heap.front();
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
    const auto at = static_cast<uint32_t>(top);
    // What was merged away, or has another neighbour by now, left its entry behind.
    if (scratch.next[at] == kGone || merges[at].rank != top >> 32) continue;
    const uint32_t right = scratch.next[at];
    symbols[at] = {merges[at].id, symbols[at].begin, symbols[right].end};
    scratch.next[at] = scratch.next[right];
    if (scratch.next[at] != kEnd) scratch.previous[scratch.next[at]] = at;
    scratch.next[right] = kGone;
    refresh(at);
    if (scratch.previous[at] != kEnd) refresh(scratch.previous[at]);
  }
  size_t written = 0;
  for (size_t i = 0; i < count; ++i) {
    if (scratch.next[i] != kGone) symbols[written++] = symbols[i];
  }
  symbols.resize(written);
}

}  // namespace weft
