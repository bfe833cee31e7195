// The way back through a transformer. What the forward pass can make again for the price of reading
// it (norms, activations) is not kept but made again.
#include <algorithm>
#include <cstring>

#include "language/transformer.h"
#include "language/transformer_pages.h"
#include "tensor/kernels.h"
#include "tensor/ops_check.h"

namespace weft {

using kernels::AttentionShape;
using kernels::Input;
using kernels::Output;
using ops::Floats;

void Transformer::NormaliseBackward(const Context& context, Norm& norm, const Tensor& x,
                                    const Tensor& statistics, const Tensor& d_y, bool accumulate,
                                    Tensor& d_x) {
  const int64_t rows = x.dim(0), columns = x.dim(1);
  const float* const mean = Floats(statistics);
  const float* const rstd = mean + rows;
  const bool trained = norm.d_weight.defined();
  if (config_.norm == NormKind::kRmsNorm) {
    kernels::RmsNormGradient(context, rows, columns, Floats(x), Floats(norm.weight),
                             config_.norm_offset ? 1.0f : 0.0f, rstd, Floats(d_y), accumulate,
                             Floats(d_x), trained ? Floats(norm.d_weight) : nullptr);
    return;
  }
  Tensor d_weight, d_bias;
  if (trained) {
    d_weight = Tensor::Empty({columns});
    d_bias = Tensor::Empty({columns});
  }
  kernels::LayerNormGradient(
      context, rows, columns, Floats(x), Floats(norm.weight), mean, rstd, Floats(d_y), accumulate,
      Floats(d_x), trained ? Floats(d_weight) : nullptr, trained ? Floats(d_bias) : nullptr);
  if (!trained) return;
  for (const auto& [sum, part] : {std::pair{&norm.d_weight, &d_weight}, {&norm.d_bias, &d_bias}}) {
    kernels::BinaryForward(context, Binary::kAdd, Broadcasting::kNone, 1, columns, Floats(*sum),
                           Floats(*part), Floats(*sum));
  }
}

void Transformer::TurnHeadsBackward(const Context& context, const TokenBatch& batch, Norm& norm,
                                    int64_t heads, int64_t stride, const Tensor& plain,
                                    float* d_x) {
  const int64_t tokens = batch.tokens(), dimension = config_.head_dimension;
  const int64_t pairs = config_.rope.rotary_dimensions / 2;
  if (pairs > 0) {
    kernels::Rotate(context, tokens, heads, dimension, pairs, stride, Floats(rotations_),
                    batch.positions.data(), true, d_x);
  }
  if (!norm.used()) return;
  Tensor d_normal = Tensor::Empty({tokens * heads, dimension}), d_plain = d_normal.Clone();
  const int64_t bytes = heads * dimension * static_cast<int64_t>(sizeof(float));
  for (int64_t t = 0; t < tokens; ++t) {
    std::memcpy(Floats(d_normal) + t * heads * dimension, d_x + t * stride, bytes);
  }
  Tensor statistics;
  Normalise(context, norm, plain, true, &statistics);
  NormaliseBackward(context, norm, plain, statistics, d_normal, false, d_plain);
  for (int64_t t = 0; t < tokens; ++t) {
    std::memcpy(d_x + t * stride, Floats(d_plain) + t * heads * dimension, bytes);
  }
}

void Transformer::BackwardLayer(const Context& context, const TokenBatch& batch, int64_t index,
                                const TransformerTrace::Layer& trace, Tensor& d_x) {
  Layer& layer = layers_[static_cast<size_t>(index)];
  const int64_t tokens = batch.tokens(), width = layer.qkv.out();
  const Shape rows_shape = {tokens, config_.hidden};
  // d of what a norm after `out` read, or d itself, as an Operand.
  const auto before = [&](Norm& norm, const Tensor& plain, const Tensor& d) {
    if (!norm.used()) return Round(context, d);
    Tensor statistics, d_plain = Tensor::Empty(rows_shape);
    Normalise(context, norm, plain, true, &statistics);
    NormaliseBackward(context, norm, plain, statistics, d, false, d_plain);
    return Round(context, d_plain);
  };
  Tensor statistics;

  // In a parallel layer attention does not feed the feed-forward part.
  const Tensor d_attention = config_.parallel_residual ? d_x.Clone() : d_x;
  {
    const Tensor d_down = before(layer.feed_forward_post, trace.feed_forward_out, d_x);
    Tensor active = Operand(precision_, tokens, config_.intermediate);
    const Unary activation = ActivationOf(config_.activation);
    kernels::Gate(context, tokens, config_.intermediate, activation, config_.gated,
                  Floats(trace.up), To(active));
    Tensor d_active = Tensor::Empty({tokens, config_.intermediate});
    layer.down.Backward(context, active, d_down, false, Floats(d_active));
    Tensor d_up = Operand(precision_, tokens, layer.up.out());
    kernels::GateGradient(context, tokens, config_.intermediate, activation, config_.gated,
                          Floats(trace.up), Floats(d_active), To(d_up));
    const Tensor& x = config_.parallel_residual ? trace.x : trace.middle;
    const Tensor read = Normalise(context, layer.feed_forward_norm, x, false, &statistics);
    Tensor d_read = Tensor::Empty(rows_shape);
    layer.up.Backward(context, read, d_up, false, Floats(d_read));
    NormaliseBackward(context, layer.feed_forward_norm, x, statistics, d_read, true, d_x);
  }
  const Tensor d_out = before(layer.attention_post, trace.attention_out, d_attention);
  Tensor d_attended = Tensor::Empty({tokens, query_width()});
  layer.attention_out.Backward(context, trace.attended, d_out, false, Floats(d_attended));
  Tensor d_qkv = Tensor::Empty({tokens, width});
  float* const d_q = Floats(d_qkv);
  float* const d_k = d_q + query_width();
  const float* const q = Floats(trace.qkv);
  const float* const k = q + query_width();
  kernels::AttentionGradient(
      context, attention_shape(index), batch.spans, width, q, k, k + key_width(),
      {trace.attended.raw(), precision_ == Precision::kBFloat16}, Floats(trace.log_sum),
      Floats(d_attended), d_q, d_k, d_k + key_width());
  TurnHeadsBackward(context, batch, layer.q_norm, config_.heads, width, trace.q_plain, d_q);
  TurnHeadsBackward(context, batch, layer.k_norm, config_.kv_heads, width, trace.k_plain, d_k);
  const Tensor normal = Normalise(context, layer.attention_norm, trace.x, false, &statistics);
  Tensor d_normal = Tensor::Empty(rows_shape);
  layer.qkv.Backward(context, normal, Round(context, d_qkv), false, Floats(d_normal));
  NormaliseBackward(context, layer.attention_norm, trace.x, statistics, d_normal, true, d_x);
}

void Transformer::EmbedBackward(const Context& context, const TokenBatch& batch,
                                const Tensor& d_x) {
  const int64_t hidden = config_.hidden;
  const bool tied = !embedding_.defined();
  if (tied ? !head_.has_gradient() : !d_embedding_.defined()) return;
  Tensor row = Tensor::Empty({hidden});
  for (int64_t t = 0; t < batch.tokens(); ++t) {
    const float* const d = Floats(d_x) + t * hidden;
    if (d_positions_.defined()) {
      float* const to =
          Floats(d_positions_) + (batch.positions[t] + config_.learned_position_offset) * hidden;
      for (int64_t i = 0; i < hidden; ++i) to[i] += d[i];
    }
    kernels::Affine(context, hidden, config_.embedding_scale, 0, d, Floats(row));
    if (tied) {
      head_.AddToColumnGradient(batch.ids[t], Floats(row));
    } else {
      float* const to = Floats(d_embedding_) + batch.ids[t] * hidden;
      for (int64_t i = 0; i < hidden; ++i) to[i] += Floats(row)[i];
    }
  }
}

void Transformer::Backward(const Context& context, const TokenBatch& batch, TransformerTrace& trace,
                           Tensor d_final) {
  Tensor statistics;
  Normalise(context, final_norm_, trace.last, true, &statistics);
  Tensor d_x = Tensor::Empty(d_final.shape());
  NormaliseBackward(context, final_norm_, trace.last, statistics, d_final, false, d_x);
  const BatchPages pages(batch.spans, attention_shape(0));
  for (int64_t i = config_.layers - 1; i >= 0; --i) {
    TransformerTrace::Layer& layer = trace.layers[static_cast<size_t>(i)];
    if (trace.recompute) {
      Tensor x = layer.x;
      ForwardLayer(context, batch, pages, i, layer, x);
    }
    BackwardLayer(context, batch, i, layer, d_x);
    if (trace.recompute) layer = TransformerTrace::Layer{};
  }
  EmbedBackward(context, batch, d_x);
}

}  // namespace weft
