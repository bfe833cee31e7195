// What the two directions of a transformer share.
#pragma once

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

// Keys and values of whole sequences, one layer's at a time, for spans that bring no pages.
struct Transformer::BatchPages {
  std::vector<kernels::AttentionSpan> spans;
  std::vector<std::byte*> pointers;
  Tensor memory;
  int64_t layer_bytes = 0;  // from one layer's part of a page to the next

  BatchPages(const TokenBatch& batch, const kernels::AttentionShape& shape)
      : spans(batch.spans.begin(), batch.spans.end()) {
    layer_bytes = shape.page_bytes();
    if (spans.empty() || spans[0].pages != nullptr) return;
    layer_bytes = 0;
    int64_t pages = 0;
    for (const kernels::AttentionSpan& span : spans) pages += Pages(span);
    memory = Tensor::Empty({pages, shape.page_bytes()}, DType::kUInt8);
    for (int64_t page = 0; page < pages; ++page) {
      pointers.push_back(memory.raw() + page * shape.page_bytes());
    }
    std::byte* const* next = pointers.data();
    for (kernels::AttentionSpan& span : spans) {
      span.pages = next;
      next += Pages(span);
    }
  }
  static int64_t Pages(const kernels::AttentionSpan& span) {
    return (span.past + span.rows + kernels::kPagePositions - 1) / kernels::kPagePositions;
  }
};

}  // namespace weft
