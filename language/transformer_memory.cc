#include "language/transformer_memory.h"

#include <algorithm>

#include "language/language_head.h"
#include "language/weight_codes.h"
#include "tensor/kernels_attention.h"

namespace weft {
namespace {

constexpr int64_t kFloat = sizeof(float);

int64_t Pages(int64_t positions) {
  return (positions + kernels::kPagePositions - 1) / kernels::kPagePositions;
}

bool IsMatrix(const WeightSpec& weight) {
  return weight.shape.size() > 1;
}
// A table is read by rows, never multiplied.
bool IsTable(const WeightSpec& weight, const ModelConfig& config) {
  return weight.name == "model.embed_positions.weight" ||
         (weight.name == "model.embed_tokens.weight" && !config.tied);
}

}  // namespace

TransformerMemory::TransformerMemory(const ModelConfig& config, Precision precision)
    : config_(config), operand_(precision == Precision::kBFloat16 ? 2 : kFloat) {
  for (const WeightSpec& weight : ModelWeights(config)) {
    int64_t elements = 1;
    for (const int64_t side : weight.shape) elements *= side;
    const bool product = IsMatrix(weight) && !IsTable(weight, config);
    if (product) elements = PanelElements(weight.shape[1], weight.shape[0]);
    weights_ += elements;
    if (!product) continue;
    matrices_ += elements;
    largest_ = std::max(largest_, elements);
  }
}

int64_t TransformerMemory::AdapterWeights(int64_t rank,
                                          std::span<const std::string> targets) const {
  int64_t elements = 0;
  for (const WeightSpec& weight : ModelWeights(config_)) {
    const bool adapted = std::ranges::any_of(targets, [&](const std::string& target) {
      return weight.name.ends_with("." + target + ".weight");
    });
    if (!adapted || !IsMatrix(weight)) continue;
    const int64_t in = weight.shape[1], out = weight.shape[0];
    elements += PanelElements(in, rank) + PanelElements(rank, out);
  }
  return elements;
}

int64_t TransformerMemory::Trace(int64_t tokens, bool recompute) const {
  const ModelConfig& c = config_;
  const int64_t queries = c.heads * c.head_dimension, keys = c.kv_heads * c.head_dimension;
  const int64_t x = c.hidden * kFloat;
  int64_t rest = (queries + 2 * keys) * kFloat                   // qkv
                 + queries * operand_                            // attended
                 + c.heads * kFloat                              // log_sum
                 + c.hidden * kFloat                             // middle
                 + c.intermediate * (c.gated ? 2 : 1) * kFloat;  // up
  if (c.query_key_norm) rest += (queries + keys) * kFloat;
  if (c.post_norms) rest += 2 * c.hidden * kFloat;
  const int64_t layers = recompute ? c.layers * x + rest : c.layers * (x + rest);
  return tokens * (layers + x);  // last
}

int64_t TransformerMemory::Layer(int64_t tokens, bool backward) const {
  const ModelConfig& c = config_;
  const int64_t queries = c.heads * c.head_dimension, keys = c.kv_heads * c.head_dimension;
  const int64_t qkv = queries + 2 * keys, up = c.intermediate * (c.gated ? 2 : 1);
  const int64_t pages = 2 * keys * operand_;  // of the layer's own keys and values
  if (!backward) {
    return tokens * (Trace(1, true) - c.layers * c.hidden * kFloat  // x and the rest, once
                     + 2 * c.hidden * operand_ + c.intermediate * operand_ + pages);
  }
  // The feed-forward part: d_x, d_down; active, d_active, d_up; read, d_read; the rows of a weight
  // gradient side by side. Then attention's: d_attended, d_qkv and its rounded form.
  const int64_t feed_forward = c.hidden * (2 * kFloat + 2 * operand_) +
                               c.intermediate * (operand_ + kFloat) + up * operand_ +
                               (operand_ == kFloat ? 0 : (c.hidden + up) * operand_);
  const int64_t attention = queries * kFloat + qkv * (kFloat + operand_) + pages;
  const int64_t transposed = c.hidden * up * operand_;
  return tokens * (feed_forward + attention) + transposed;
}

int64_t TransformerMemory::Head(int64_t rows, bool backward) const {
  const int64_t block = std::min(rows, kHeadRows), outputs = config_.vocabulary;
  if (!backward) return block * outputs * kFloat;
  const int64_t sides = operand_ == kFloat ? 1 : 2;  // d_logits, and its rows side by side
  const int64_t transposed = config_.hidden * outputs * operand_;
  return block * outputs * (kFloat + sides * operand_) + transposed;
}

int64_t TransformerMemory::Cache(int64_t positions) const {
  const kernels::AttentionShape shape{.heads = config_.heads,
                                      .kv_heads = config_.kv_heads,
                                      .head_dimension = config_.head_dimension,
                                      .scale = 1,
                                      .bf16 = operand_ != kFloat};
  return Pages(positions) * shape.page_bytes() * config_.layers;
}

int64_t LoadedBytes(const ModelFile& file, const LoadOptions& options) {
  const bool bf16 = options.precision == Precision::kBFloat16;
  int64_t bytes = 0;
  for (const WeightSpec& weight : ModelWeights(file.config())) {
    int64_t elements = 1;
    for (const int64_t side : weight.shape) elements *= side;
    if (!IsMatrix(weight) || IsTable(weight, file.config())) {
      bytes += elements * kFloat;
      continue;
    }
    const int64_t in = weight.shape[1], out = weight.shape[0];
    const auto form = CodeFormOf(file.Find(weight.name).type());
    if (bf16 && options.keep_quantised && !options.keep_master && form) {
      bytes += kernels::QuantisedBytes(*form, in, out);
      continue;
    }
    if (bf16) bytes += PanelElements(in, out) * 2;
    if (!bf16 || options.keep_master) bytes += PanelElements(in, out) * kFloat;
  }
  return bytes;
}

}  // namespace weft
