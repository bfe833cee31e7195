// Keys and values of sequences under generation, in pages of 64 positions. Sequences that begin
// alike (samples of one prompt) share the full pages of their beginning.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tensor/tensor.h"

namespace weft {

class KeyValueCache {
 public:
  // page_bytes: of all layers (Transformer::page_bytes).
  explicit KeyValueCache(int64_t page_bytes) : page_bytes_(page_bytes) {}

  // A sequence's pages; positions [0, length) are filled. Movable; gives its pages back in the end.
  class Sequence {
   public:
    int64_t length() const { return length_; }
    // Room for `count` more positions, which then count as filled: the pages to be written.
    std::byte* const* Extend(KeyValueCache& cache, int64_t count);
    // A sequence of its own that goes on after the first `length` positions of this one. Full pages
    // are shared, the last one is copied.
    Sequence Fork(KeyValueCache& cache, int64_t length) const;
    Sequence Fork(KeyValueCache& cache) const { return Fork(cache, length_); }

   private:
    std::vector<std::shared_ptr<Tensor>> pages_;
    std::vector<std::byte*> pointers_;
    int64_t length_ = 0;
  };

  int64_t bytes() const;  // of pages in use

 private:
  std::shared_ptr<Tensor> NewPage();

  int64_t page_bytes_;
  std::vector<std::weak_ptr<Tensor>> pages_;
};

}  // namespace weft
