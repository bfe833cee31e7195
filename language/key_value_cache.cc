#include "language/key_value_cache.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "tensor/kernels_attention.h"

namespace weft {

std::shared_ptr<Tensor> KeyValueCache::NewPage() {
  auto page = std::make_shared<Tensor>(Tensor::Empty({page_bytes_}, DType::kUInt8));
  std::erase_if(pages_, [](const std::weak_ptr<Tensor>& p) { return p.expired(); });
  pages_.push_back(page);
  return page;
}

int64_t KeyValueCache::bytes() const {
  return page_bytes_ * std::count_if(pages_.begin(), pages_.end(),
                                     [](const auto& page) { return !page.expired(); });
}

std::byte* const* KeyValueCache::Sequence::Extend(KeyValueCache& cache, int64_t count) {
  length_ += count;
  while (std::ssize(pages_) * kernels::kPagePositions < length_) {
    pages_.push_back(cache.NewPage());
    pointers_.push_back(pages_.back()->raw());
  }
  return pointers_.data();
}

// What the copied page holds from `length` on is written before it is read.
KeyValueCache::Sequence KeyValueCache::Sequence::Fork(KeyValueCache& cache, int64_t length) const {
  WEFT_CHECK(length >= 0 && length <= length_) << "position " << length << " of " << length_;
  const int64_t pages = (length + kernels::kPagePositions - 1) / kernels::kPagePositions;
  Sequence fork = *this;
  fork.length_ = length;
  fork.pages_.resize(static_cast<size_t>(pages));
  fork.pointers_.resize(static_cast<size_t>(pages));
  if (length % kernels::kPagePositions == 0) return fork;
  const std::byte* const from = fork.pointers_.back();
  fork.pages_.back() = cache.NewPage();
  fork.pointers_.back() = fork.pages_.back()->raw();
  std::memcpy(fork.pointers_.back(), from, static_cast<size_t>(cache.page_bytes_));
  return fork;
}

}  // namespace weft
