#include "language/key_value_cache.h"

#include <algorithm>
#include <cstring>

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

KeyValueCache::Sequence KeyValueCache::Sequence::Fork(KeyValueCache& cache) const {
  Sequence fork = *this;
  if (length_ % kernels::kPagePositions == 0) return fork;
  fork.pages_.back() = cache.NewPage();
  fork.pointers_.back() = fork.pages_.back()->raw();
  std::memcpy(fork.pointers_.back(), pointers_.back(), static_cast<size_t>(cache.page_bytes_));
  return fork;
}

}  // namespace weft
