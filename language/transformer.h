// A decoder-only transformer of any family that ModelConfig describes, forward and backward. Rows
// are tokens of several sequences one after another, without padding: what a row gives depends on
// its own sequence alone, bit for bit, whether it is computed in a batch, alone, or over a cache of
// what came before (architecture, section 3).
//
// The tape of tensor/tape.h ends where this begins: losses give d loss / d final rows (usually
// through language_head.h), and Backward goes on from there.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "language/model_config.h"
#include "language/projection.h"
#include "nn/module.h"
#include "tensor/kernels_attention.h"
#include "tensor/tensor_map.h"

namespace weft {

struct BatchPages;

// T tokens: their ids, their positions in their sequences, and which rows are which sequence's.
// Spans without pages are whole sequences, whose keys are kept for the call only; answers to one
// prompt may share its rows as their parent, and prompts what they begin with.
struct TokenBatch {
  std::span<const int32_t> ids;
  std::span<const int32_t> positions;
  std::span<const kernels::AttentionSpan> spans;
  std::span<const float> noise = {};  // [T, H], added to the embeddings; empty: none

  int64_t tokens() const { return std::ssize(ids); }
};

// What a forward pass leaves for the backward pass; kept by the caller and used again.
struct TransformerTrace {
  struct Layer {
    Tensor x;                  // [T, H], what the layer reads
    Tensor qkv;                // [T, (heads + 2 kv_heads) D], turned
    Tensor q_plain, k_plain;   // before their norms, where there are such
    Tensor attended, log_sum;  // Operand [T, heads D]; [T, heads]
    Tensor attention_out;      // before its own norm, where there is one
    Tensor middle;             // [T, H], what the feed-forward part adds to
    Tensor up;                 // [T, I] or, gated, [T, 2 I]
    Tensor feed_forward_out;   // before its own norm, where there is one
  };
  std::vector<Layer> layers;
  Tensor last;  // [T, H], what the final norm reads
  // Keep each layer's x alone and compute the rest again on the way back: the same bits in less
  // memory, a third more time.
  bool recompute = false;
};

class Transformer {
 public:
  // Weights are zero until they are set.
  Transformer(const ModelConfig& config, Precision precision);

  const ModelConfig& config() const { return config_; }
  Precision precision() const { return precision_; }

  // Every weight by its canonical name (weight_layout.h) and torch shape, for loaders and
  // writers: rows [begin, ..) of [rows, columns]; a vector is one column.
  struct WeightSlot {
    std::string name;
    int64_t rows, columns;
    std::function<void(int64_t begin, std::span<const float>)> set;
    std::function<void(int64_t begin, std::span<float>)> get;
    // Of a matrix: where its rows lie.
    Projection* projection = nullptr;
    int64_t first = 0;
  };
  std::vector<WeightSlot> Weights();
  // The trained tensors, f32 (matrices in panels, those that lie side by side as one), and their
  // gradients in the same order. EnableGradient allocates the gradients; frozen: Backward passes
  // through only. Gradients are asked for anew after ClearGradients, which makes all zero.
  void EnableGradient(bool frozen = false);
  std::vector<NamedParameter> Parameters();
  std::vector<Tensor> Gradients();
  void ClearGradients();
  // Takes another model's trained tensors over, by name and by handle where they lie in the same
  // layout; Refresh must follow. Not for adapters.
  void UseParameters(const TensorMap& parameters);
  // All that Forward reads, by handle: what a learner publishes, and what a model of the same
  // config and precision without weights of its own takes over. Whoever changes weights in place
  // makes sure that it has them alone (nn/module.h), so that a snapshot stays what it was.
  TensorMap Snapshot();
  void Adopt(const TensorMap& snapshot);
  // The same without adapters: the model that they lie beside.
  void AdoptBase(const TensorMap& snapshot);
  // Drops the handles of what was adopted, so that its owner need not copy it before a change.
  // Nothing but Adopt may follow.
  void LetGo();

  // When weights were set, and after an optimiser's step.
  void Refresh(const Context& context);

  // Adapters beside the matrices whose names end in one of the targets ("q_proj"), with A uniform
  // in
  // +-1 / sqrt(in) and B zero, as PEFT begins. From here on they are what Parameters and Gradients
  // give and all else is frozen. Throws Error(kInvalidArgument) for a target that the model lacks.
  void AddAdapters(int64_t rank, float scale, std::span<const std::string> targets, Rng& rng);
  // Puts one that was learnt beside a matrix (its name as in Weights), in any form of its weights:
  // what it adds has the bits of training with it. a [rank, in], b [out, rank].
  void AttachAdapter(const Context& context, std::string_view name, std::span<const float> a,
                     std::span<const float> b, float scale);
  // Every adapter by the canonical name of its matrix.
  struct AdapterSlot {
    std::string name;  // "model.layers.0.self_attn.q_proj"
    Projection::Adapter* adapter;
  };
  std::vector<AdapterSlot> Adapters();
  // Adds them to the weights, which must have been kept in f32.
  void MergeAdapters(const Context& context);

  kernels::AttentionShape attention_shape(int64_t layer) const;
  int64_t page_bytes() const;  // of a page of 64 positions, all layers

  // The rows after the final norm: Operand [T, H], or f32 where a score head reads them. trace may
  // be null. Throws Error(kInvalidArgument) for an id outside the vocabulary or a position outside
  // the context.
  Tensor Forward(const Context& context, const TokenBatch& batch, TransformerTrace* trace) const;
  // Adds to the gradients; d_final [T, H] f32 is d loss / d rows. The trace is used up.
  void Backward(const Context& context, const TokenBatch& batch, TransformerTrace& trace,
                Tensor d_final);

  // The output matrix [H, V]: the embedding's where tied.
  Projection& head() { return head_; }
  const Projection& head() const { return head_; }

 private:
  struct Norm {
    Tensor weight, bias, d_weight, d_bias;
    bool used() const { return weight.defined(); }
  };
  struct Layer {
    Norm attention_norm, feed_forward_norm, attention_post, feed_forward_post, q_norm, k_norm;
    Projection qkv, attention_out, up, down;
  };

  int64_t query_width() const { return config_.heads * config_.head_dimension; }
  int64_t key_width() const { return config_.kv_heads * config_.head_dimension; }
  Norm MakeNorm(int64_t size) const;
  // Operand, or f32 when `plain`. statistics: f32 [2, T], mean and 1 / deviation; may be null.
  Tensor Normalise(const Context& context, const Norm& norm, const Tensor& x, bool plain,
                   Tensor* statistics = nullptr) const;
  // d_x (+)= from d_y, f32; statistics as Normalise gave them.
  void NormaliseBackward(const Context& context, Norm& norm, const Tensor& x,
                         const Tensor& statistics, const Tensor& d_y, bool accumulate, Tensor& d_x);
  // Norm and rotation of heads that lie side by side in rows `stride` apart.
  void TurnHeads(const Context& context, const TokenBatch& batch, const Norm& norm, int64_t heads,
                 int64_t stride, float* x, Tensor* plain) const;
  void TurnHeadsBackward(const Context& context, const TokenBatch& batch, Norm& norm, int64_t heads,
                         int64_t stride, const Tensor& plain, float* d_x);
  Tensor Round(const Context& context, const Tensor& x) const;

  Tensor Embed(const Context& context, const TokenBatch& batch) const;
  void EmbedBackward(const Context& context, const TokenBatch& batch, const Tensor& d_x);
  void ForwardLayer(const Context& context, const TokenBatch& batch, const BatchPages& pages,
                    int64_t index, TransformerTrace::Layer& trace, Tensor& x) const;
  void BackwardLayer(const Context& context, const TokenBatch& batch, int64_t index,
                     const TransformerTrace::Layer& trace, Tensor& d_x);
  template <class F>
  void ForNorms(F&& function);
  // All weights that can be trained but adapters', in the order of Parameters. A matrix has memory
  // of its own once it was visited.
  template <class F>
  void ForTrained(F&& function);
  template <class F>
  void ForProjections(F&& function);
  // The adapter of a matrix of a snapshot, made where there is none yet; lora: rank and scale.
  Projection::Adapter& AdapterOf(const std::string& matrix, const Tensor& lora);
  void CheckBatch(const TokenBatch& batch) const;
  void GrowRotations(int64_t positions) const;

  ModelConfig config_;
  Precision precision_;
  std::vector<Layer> layers_;
  Norm final_norm_;
  Projection head_;
  Tensor embedding_, d_embedding_;  // [V, H], where not tied
  Tensor positions_, d_positions_;  // [P, H], where learned
  mutable Tensor rotations_;        // [positions][cosines, sines], grown on demand
  std::vector<AdapterSlot> adapters_;
};

}  // namespace weft
