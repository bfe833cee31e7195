#include "language/transformer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "language/rope.h"
#include "language/transformer_pages.h"
#include "tensor/kernels.h"
#include "tensor/kernels_bf16.h"
#include "tensor/ops_check.h"

namespace weft {

using kernels::AttentionShape;
using ops::Floats;

Transformer::Transformer(const ModelConfig& config, Precision precision)
    : config_(config), precision_(precision) {
  const int64_t hidden = config.hidden;
  if (config_.attention_scale == 0) {
    config_.attention_scale =
        static_cast<float>(1 / std::sqrt(static_cast<double>(config.head_dimension)));
  }
  for (int64_t i = 0; i < config.layers; ++i) {
    Layer& layer = layers_.emplace_back();
    layer.attention_norm = MakeNorm(hidden);
    layer.feed_forward_norm = MakeNorm(hidden);
    if (config.post_norms) {
      layer.attention_post = MakeNorm(hidden);
      layer.feed_forward_post = MakeNorm(hidden);
    }
    if (config.query_key_norm) {
      layer.q_norm = MakeNorm(config.head_dimension);
      layer.k_norm = MakeNorm(config.head_dimension);
    }
    layer.qkv = Projection(hidden, query_width() + 2 * key_width(), config.qkv_bias, precision);
    layer.attention_out =
        Projection(query_width(), hidden, config.attention_output_bias, precision);
    layer.up = Projection(hidden, config.intermediate * (config.gated ? 2 : 1),
                          config.feed_forward_bias, precision);
    layer.down = Projection(config.intermediate, hidden, config.feed_forward_bias, precision);
  }
  final_norm_ = MakeNorm(hidden);
  if (config.labels > 0) {
    config_.tied = false;
    head_ = Projection(hidden, config.labels, false, Precision::kFloat32);
  } else {
    head_ = Projection(hidden, config.vocabulary, false, precision);
  }
  if (!config_.tied) embedding_ = Tensor::Zeros({config.vocabulary, hidden});
  if (config.learned_positions > 0) positions_ = Tensor::Zeros({config.learned_positions, hidden});
}

Transformer::Norm Transformer::MakeNorm(int64_t size) const {
  Norm norm;
  norm.weight = Tensor::Zeros({size});
  if (config_.norm == NormKind::kLayerNorm) norm.bias = Tensor::Zeros({size});
  return norm;
}

AttentionShape Transformer::attention_shape(int64_t layer) const {
  return {.heads = config_.heads,
          .kv_heads = config_.kv_heads,
          .head_dimension = config_.head_dimension,
          .scale = config_.attention_scale,
          .softcap = config_.attention_softcap,
          .window = config_.windows.empty() ? 0 : config_.windows[static_cast<size_t>(layer)],
          .bf16 = precision_ == Precision::kBFloat16};
}

int64_t Transformer::page_bytes() const {
  return attention_shape(0).page_bytes() * config_.layers;
}

void Transformer::CheckBatch(const TokenBatch& batch) const {
  WEFT_CHECK(batch.positions.size() == batch.ids.size()) << "a position for every token";
  for (int64_t i = 0; i < batch.tokens(); ++i) {
    if (batch.ids[i] < 0 || batch.ids[i] >= config_.vocabulary) {
      throw Error(ErrorCode::kInvalidArgument,
                  "token " + std::to_string(i) + " has id " + std::to_string(batch.ids[i]) +
                      ", the vocabulary has " + std::to_string(config_.vocabulary));
    }
    const int64_t limit = config_.learned_positions > 0
                              ? config_.learned_positions - config_.learned_position_offset
                              : config_.context;
    if (batch.positions[i] < 0 || batch.positions[i] >= limit) {
      throw Error(ErrorCode::kInvalidArgument,
                  "token " + std::to_string(i) + " stands at position " +
                      std::to_string(batch.positions[i]) + ", the model's context is " +
                      std::to_string(limit) + " tokens");
    }
  }
}

void Transformer::GrowRotations(int64_t positions) const {
  const int64_t pairs = config_.rope.rotary_dimensions / 2;
  if (pairs == 0 || (rotations_.defined() && rotations_.dim(0) >= positions)) return;
  const int64_t before = rotations_.defined() ? rotations_.dim(0) : 256;
  const int64_t rows =
      std::min(std::max(2 * before, positions), std::max(config_.context, positions));
  Tensor table = Tensor::Empty({rows, 2 * pairs});
  for (int64_t position = 0; position < rows; ++position) {
    MakeRotation(config_.rope, position,
                 table.data<float>().subspan(static_cast<size_t>(position * 2 * pairs),
                                             static_cast<size_t>(2 * pairs)));
  }
  rotations_ = table;
}

Tensor Transformer::Normalise(const Context& context, const Norm& norm, const Tensor& x, bool plain,
                              Tensor* statistics) const {
  const int64_t rows = x.dim(0), columns = x.dim(1);
  Tensor y = Operand(plain ? Precision::kFloat32 : precision_, rows, columns);
  Tensor numbers = Tensor::Empty({2, rows});
  if (statistics != nullptr) *statistics = numbers;
  float* const mean = Floats(numbers);
  float* const rstd = mean + rows;
  if (config_.norm == NormKind::kRmsNorm) {
    kernels::RmsNorm(context, rows, columns, columns, Floats(x), Floats(norm.weight),
                     config_.norm_offset ? 1.0f : 0.0f, config_.norm_epsilon, To(y), rstd);
    return y;
  }
  kernels::LayerNorm(context, rows, columns, Floats(x), Floats(norm.weight), Floats(norm.bias),
                     config_.norm_epsilon, To(y), mean, rstd);
  return y;
}

Tensor Transformer::Round(const Context& context, const Tensor& x) const {
  if (precision_ == Precision::kFloat32) return x;
  Tensor y = Tensor::Empty(x.shape(), DType::kBFloat16);
  kernels::Round(context, x.elements(), Floats(x), y.data<BFloat16>().data());
  return y;
}

void Transformer::TurnHeads(const Context& context, const TokenBatch& batch, const Norm& norm,
                            int64_t heads, int64_t stride, float* x, Tensor* plain) const {
  const int64_t tokens = batch.tokens(), dimension = config_.head_dimension;
  if (norm.used()) {
    Tensor rows = Tensor::Empty({tokens * heads, dimension});
    for (int64_t t = 0; t < tokens; ++t) {
      std::memcpy(Floats(rows) + t * heads * dimension, x + t * stride,
                  heads * dimension * sizeof(float));
    }
    const Tensor normal = Normalise(context, norm, rows, true);
    for (int64_t t = 0; t < tokens; ++t) {
      std::memcpy(x + t * stride, Floats(normal) + t * heads * dimension,
                  heads * dimension * sizeof(float));
    }
    if (plain != nullptr) *plain = rows;
  }
  const int64_t pairs = config_.rope.rotary_dimensions / 2;
  if (pairs == 0) return;
  kernels::Rotate(context, tokens, heads, dimension, pairs, stride, Floats(rotations_),
                  batch.positions.data(), false, x);
}

Tensor Transformer::Embed(const Context& context, const TokenBatch& batch) const {
  const int64_t hidden = config_.hidden;
  Tensor x = Tensor::Empty({batch.tokens(), hidden});
  auto run = [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      float* const row = x.data<float>().data() + t * hidden;
      if (embedding_.defined()) {
        std::memcpy(row, Floats(embedding_) + batch.ids[t] * hidden, hidden * sizeof(float));
      } else {
        head_.GetColumn(batch.ids[t], row);
      }
      if (!batch.noise.empty()) {
        const float* const noise = batch.noise.data() + t * hidden;
        for (int64_t i = 0; i < hidden; ++i) row[i] += noise[i];
      }
      if (config_.embedding_scale != 1) {
        for (int64_t i = 0; i < hidden; ++i) row[i] *= config_.embedding_scale;
      }
      if (!positions_.defined()) continue;
      const float* const position =
          Floats(positions_) + (batch.positions[t] + config_.learned_position_offset) * hidden;
      for (int64_t i = 0; i < hidden; ++i) row[i] += position[i];
    }
  };
  if (context.pool != nullptr && batch.tokens() > 8) {
    context.pool->ParallelFor(batch.tokens(), 1, run);
  } else {
    run(0, batch.tokens());
  }
  return x;
}

void Transformer::ForwardLayer(const Context& context, const TokenBatch& batch,
                               const BatchPages& pages, int64_t index,
                               TransformerTrace::Layer& trace, Tensor& x) const {
  const Layer& layer = layers_[static_cast<size_t>(index)];
  const int64_t tokens = batch.tokens(), width = layer.qkv.out();
  const AttentionShape shape = attention_shape(index);
  trace.x = x;

  const Tensor normal = Normalise(context, layer.attention_norm, x, false);
  trace.qkv = Tensor::Empty({tokens, width});
  layer.qkv.Forward(context, normal, nullptr, trace.qkv);
  float* const q = Floats(trace.qkv);
  float *const k = q + query_width(), *const v = k + key_width();
  TurnHeads(context, batch, layer.q_norm, config_.heads, width, q, &trace.q_plain);
  TurnHeads(context, batch, layer.k_norm, config_.kv_heads, width, k, &trace.k_plain);
  const int64_t offset = pages.layer_bytes * index;
  pages.Store(context, shape, offset, width, k, v);
  trace.attended = Operand(precision_, tokens, query_width());
  trace.log_sum = Tensor::Empty({tokens, config_.heads});
  kernels::Attention(context, shape, pages.spans, offset, width, q, To(trace.attended),
                     Floats(trace.log_sum));

  Tensor middle = Tensor::Empty({tokens, config_.hidden});
  const auto add = [&](const Norm& norm, const Projection& out, const Tensor& rows, Tensor& plain,
                       const Tensor& onto, Tensor& y) {
    if (!norm.used()) {
      out.Forward(context, rows, Floats(onto), y);
      return;
    }
    plain = Tensor::Empty({tokens, config_.hidden});
    out.Forward(context, rows, nullptr, plain);
    const Tensor unit = Normalise(context, norm, plain, true);
    kernels::BinaryForward(context, Binary::kAdd, Broadcasting::kNone, 1, y.elements(),
                           Floats(onto), Floats(unit), Floats(y));
  };
  add(layer.attention_post, layer.attention_out, trace.attended, trace.attention_out, x, middle);
  trace.middle = middle;

  const Tensor read =
      Normalise(context, layer.feed_forward_norm, config_.parallel_residual ? x : middle, false);
  trace.up = Tensor::Empty({tokens, layer.up.out()});
  layer.up.Forward(context, read, nullptr, trace.up);
  Tensor active = Operand(precision_, tokens, config_.intermediate);
  kernels::Gate(context, tokens, config_.intermediate, ActivationOf(config_.activation),
                config_.gated, Floats(trace.up), To(active));
  x = Tensor::Empty({tokens, config_.hidden});
  add(layer.feed_forward_post, layer.down, active, trace.feed_forward_out, middle, x);
}

Tensor Transformer::Forward(const Context& context, const TokenBatch& batch,
                            TransformerTrace* trace) const {
  CheckBatch(batch);
  int64_t longest = 0;
  for (const int32_t position : batch.positions) {
    longest = std::max<int64_t>(longest, position + 1);
  }
  GrowRotations(longest);
  const BatchPages pages(batch.spans, attention_shape(0));
  Tensor x = Embed(context, batch);
  if (trace != nullptr) trace->layers.resize(layers_.size());
  TransformerTrace::Layer scratch;
  for (int64_t i = 0; i < config_.layers; ++i) {
    const bool keep = trace != nullptr && !trace->recompute;
    TransformerTrace::Layer& layer = keep ? trace->layers[static_cast<size_t>(i)] : scratch;
    ForwardLayer(context, batch, pages, i, layer, x);
    if (trace != nullptr && !keep) {
      trace->layers[static_cast<size_t>(i)] = TransformerTrace::Layer{.x = scratch.x};
    }
  }
  if (trace != nullptr) trace->last = x;
  return Normalise(context, final_norm_, x, config_.labels > 0);
}

}  // namespace weft
