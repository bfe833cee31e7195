// What passes over rows of tokens share: the two directions of a transformer, and encoders.
#pragma once

#include <cstring>
#include <vector>

#include "language/transformer.h"

namespace weft {

inline Unary ActivationOf(FeedForwardActivation activation) {
  switch (activation) {
    case FeedForwardActivation::kRelu:
      return Unary::kRelu;
    case FeedForwardActivation::kGelu:
      return Unary::kGeluErf;
    case FeedForwardActivation::kGeluTanh:
      return Unary::kGelu;
    case FeedForwardActivation::kSilu:
      break;
  }
  return Unary::kSilu;
}

inline kernels::Output To(Tensor& x) {
  return {x.raw(), x.dtype() == DType::kBFloat16};
}

// Where the keys and values of a batch go: the pages that its spans bring, or, for spans without,
// pages of its own, one layer's at a time. A span with a parent shares the parent's full pages and
// begins with a copy of the last one.
struct BatchPages {
  std::vector<kernels::AttentionSpan> spans;
  std::vector<std::vector<kernels::AttentionSpan>> levels;  // without parents, their children, ..
  std::vector<std::byte*> pointers;
  Tensor memory;
  int64_t layer_bytes = 0;  // from one layer's part of a page to the next
  int64_t page_bytes;

  BatchPages(std::span<const kernels::AttentionSpan> s, const kernels::AttentionShape& shape)
      : spans(s.begin(), s.end()), page_bytes(shape.page_bytes()) {
    layer_bytes = page_bytes;
    if (spans.empty() || spans[0].pages != nullptr) return;
    layer_bytes = 0;
    int64_t own = 0, all = 0;
    for (const kernels::AttentionSpan& span : spans) {
      own += Pages(span) - Shared(span);
      all += Pages(span);
    }
    memory = Tensor::Empty({own, page_bytes}, DType::kUInt8);
    pointers.resize(static_cast<size_t>(all));
    std::byte** to = pointers.data();
    std::byte* next = memory.raw();
    for (kernels::AttentionSpan& span : spans) {
      span.pages = to;
      for (int64_t page = 0; page < Pages(span); ++page, ++to) {
        if (page < Shared(span)) {
          *to = spans[span.parent].pages[page];
        } else {
          *to = next;
          next += page_bytes;
        }
      }
    }
    std::vector<size_t> depth;
    for (const kernels::AttentionSpan& span : spans) {
      depth.push_back(span.parent < 0 ? 0 : depth[span.parent] + 1);
      if (depth.back() == levels.size()) levels.emplace_back();
      levels[depth.back()].push_back(span);
    }
  }

  void Store(const Context& context, const kernels::AttentionShape& shape, int64_t offset,
             int64_t stride, const float* k, const float* v) const {
    if (layer_bytes != 0) {
      kernels::StoreKeys(context, shape, spans, offset, stride, k, v);
      return;
    }
    for (const std::vector<kernels::AttentionSpan>& level : levels) {
      for (const kernels::AttentionSpan& span : level) {
        if (span.past % kernels::kPagePositions == 0) continue;
        const int64_t page = Shared(span);
        std::memcpy(span.pages[page], spans[span.parent].pages[page],
                    static_cast<size_t>(page_bytes));
      }
      kernels::StoreKeys(context, shape, level, offset, stride, k, v);
    }
  }

 private:
  static int64_t Pages(const kernels::AttentionSpan& span) {
    return (span.past + span.rows + kernels::kPagePositions - 1) / kernels::kPagePositions;
  }
  static int64_t Shared(const kernels::AttentionSpan& span) {
    return span.parent < 0 ? 0 : span.past / kernels::kPagePositions;
  }
};

}  // namespace weft
