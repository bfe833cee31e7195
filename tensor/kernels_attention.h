// Attention (Vaswani et al. 2017), causal or of whole texts, with grouped queries (Ainslie et al.
// 2023). Keys and values lie in pages of 64 positions counted from the start of their sequence.
// Under the law of kernels.h: a score is one accumulator over D; the largest score, the sum of
// exponentials (16 accumulators by key mod 16, folded) and the weighted values (one accumulator a
// page, pages added in order) depend on the position alone, or on the text's length, not on how
// many rows, sequences or threads are at work. So a row scored alone over a cache has the bits of
// the same row in a batch. In bf16, q, k, v and the unnormalised probabilities are rounded and
// products go by pairs (kernels_bf16.h).
#pragma once

#include <cstdint>
#include <span>

#include "tensor/kernels_transformer.h"

namespace weft::kernels {

constexpr int64_t kPagePositions = 64;

struct AttentionShape {
  int64_t heads, kv_heads, head_dimension;
  float scale;
  float softcap = 0;   // scores become cap tanh(score / cap); 0: none
  int64_t window = 0;  // keys that a query sees, itself included; 0: all before it
  bool bf16 = false;
  // false: every row sees all of its span, which is a whole sequence; no window and no gradient.
  bool causal = true;

  int64_t page_bytes() const;  // of one layer
};

// Rows [first_row, first_row + rows) of a batch are positions [past, past + rows) of a sequence,
// whose page i holds the positions from 64 i on. In a batch of whole sequences the positions before
// `past` may be all those of another span, the parent, which comes before: answers share a prompt,
// prompts what they begin with.
struct AttentionSpan {
  int64_t first_row, rows, past;
  std::byte* const* pages = nullptr;
  int64_t parent = -1;  // index of a span; -1: none
};

// Writes the rows' keys and values [T, kv_heads * D] (tokens `stride` apart), `offset` bytes into
// their pages; a page's first position makes the rest of it zero.
void StoreKeys(const Context& context, const AttentionShape& shape,
               std::span<const AttentionSpan> spans, int64_t offset, int64_t stride, const float* k,
               const float* v);

// y [T, heads * D] of q (tokens `stride` apart). log_sum [T, heads]: of the scores, for the
// gradient; may be null.
void Attention(const Context& context, const AttentionShape& shape,
               std::span<const AttentionSpan> spans, int64_t offset, int64_t stride, const float* q,
               Output y, float* log_sum);

// Gradients of whole sequences (no pages; past is 0 or the positions of the parent). Those of a
// prompt's keys are sums over its own rows, then over its answers in order. q, k, v, d_q, d_k and
// d_v have tokens `stride` apart; y and d_y [T, heads * D] are contiguous.
void AttentionGradient(const Context& context, const AttentionShape& shape,
                       std::span<const AttentionSpan> spans, int64_t stride, const float* q,
                       const float* k, const float* v, Input y, const float* log_sum,
                       const float* d_y, float* d_q, float* d_k, float* d_v);

}  // namespace weft::kernels
