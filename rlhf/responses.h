// Numbers of the tokens of several answers, one answer after another without padding: answer i has
// the tokens [offsets[i], offsets[i + 1]).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft {

struct Responses {
  std::vector<int64_t> offsets = {0};

  void Add(int64_t tokens) { offsets.push_back(offsets.back() + tokens); }
  int64_t count() const { return std::ssize(offsets) - 1; }
  int64_t tokens() const { return offsets.back(); }
  int64_t length(int64_t i) const { return offsets[i + 1] - offsets[i]; }
  template <class T>
  std::span<T> Of(std::span<T> values, int64_t i) const {
    return values.subspan(offsets[i], length(i));
  }
};

}  // namespace weft
