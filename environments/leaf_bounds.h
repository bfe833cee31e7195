// Checks that a leaf of a batch's observations keeps the bounds that its spec promises: a promise
// that networks (one-hot integers) and scalings rely on.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "environments/space.h"

namespace weft {

class LeafBounds {
 public:
  // leaf: its index in the spec. rows: of the batch.
  LeafBounds(const Leaf& leaf, size_t index, int64_t rows);

  size_t leaf() const { return index_; }
  // Whether there is anything to check: bounds that do not hold for every value of the dtype.
  bool any() const { return !std::holds_alternative<std::monostate>(table_); }

  // Of rows [begin, end). values: [N, ..] of the leaf as the batch hands them out.
  bool Hold(const void* values, int64_t begin, int64_t end) const;
  // The first row whose values do not hold, and why: "[3] is 7, outside 0 .. 5".
  std::pair<int64_t, std::string> Find(const void* values, int64_t begin, int64_t end) const;

 private:
  // One bound for each element of all rows, so that a check is one flat loop.
  template <class T>
  struct Table {
    std::vector<T> low, high;
  };
  template <class T>
  void Fill(const Leaf& leaf, int64_t rows);

  size_t index_;
  int64_t elements_;  // of a row
  // Of f32 also for f64, which arrives as f32.
  std::variant<std::monostate, Table<float>, Table<int64_t>, Table<uint8_t>> table_;
};

}  // namespace weft
