// From the final rows of a transformer to what is wanted of the distribution of the next token, and
// back, without the logits of more than a block of rows in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "language/transformer.h"

namespace weft {

// Rows whose logits are in memory at a time; weight gradients are sums over such blocks.
constexpr int64_t kHeadRows = 256;

// f32 [rows, V], softcap applied; for a few rows (sampling).
Tensor Logits(const Context& context, const Transformer& model, const Tensor& final_rows);

// What a loss says of a block of rows: it gets their numbers in `rows`, their log-probabilities and
// entropies and writes the gradients of the loss with respect to both.
struct HeadBlock {
  std::span<const int32_t> rows;
  std::span<const float> log_probability, entropy;
  std::span<float> d_log_probability, d_entropy;  // zero on entry
};
using HeadLoss = std::function<void(const HeadBlock&)>;

struct HeadOptions {
  float temperature = 1;  // logits are divided by it first
  bool entropy = false;
};

struct TokenScores {
  Tensor log_probability;  // f32 [T]: log p(target | row); 0 where the target is -1
  Tensor entropy;          // f32 [T], where asked for
};

// final_rows: Operand [T, H]; targets [T], -1: nothing is wanted of the row. With a loss, which is
// called block by block, also adds to the gradients of the output matrix and writes d_final [T, H]
// f32, zero for rows without a target.
TokenScores ScoreTokens(const Context& context, Transformer& model, const Tensor& final_rows,
                        std::span<const int32_t> targets, const HeadOptions& options,
                        const HeadLoss& loss = nullptr, Tensor* d_final = nullptr);

// The mean of -log p over the rows with a target, one at least, and its gradients as of
// ScoreTokens.
double MeanLoss(const Context& context, Transformer& model, const Tensor& final_rows,
                std::span<const int32_t> targets, Tensor* d_final);

}  // namespace weft
