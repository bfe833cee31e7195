// LoRA adapters in PEFT's format: a folder with adapter_config.json and adapter_model.safetensors.
// Hu et al. 2021: y = W x + scale B A x; rank-stabilised (Kalajdzievski 2023): scale = alpha /
// sqrt(r). Matrices have canonical names (weight_layout.h); what families fuse is split by rows
// of B, each part with a copy of A.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "language/model_config.h"
#include "language/stored_weight.h"
#include "language/transformer.h"

namespace weft {

struct LoraMatrix {
  std::string weight;  // what it adds to: "model.layers.0.self_attn.q_proj.weight"
  int64_t in = 0, out = 0;
  std::vector<float> a;  // [rank, in]
  std::vector<float> b;  // [out, rank]
};

struct LoraAdapter {
  int64_t rank = 0;
  double alpha = 0;
  bool rank_stabilised = false;
  double dropout = 0;                // while training
  std::string base_model;            // base_model_name_or_path
  std::vector<LoraMatrix> matrices;  // in the order of ModelWeights

  double scale() const;
};

// Of an adapter for a model of this config. Options of PEFT that change what an adapter computes
// and that weft does not have (DoRA, biases, patterns of ranks, saved modules, ...) are
// Error(kInvalidArgument) naming the key; tensors that are missing, unexpected or of another shape
// are listed in one Error(kCorrupt).
LoraAdapter ReadLoraAdapter(const std::string& folder, const ModelConfig& config);

// Puts it beside the weights of a model of that config, quantised ones too.
void AttachLoraAdapter(const Context& context, const LoraAdapter& adapter, Transformer& model);

// The weights with what the adapter adds to them, as views of both, which must outlive them. Each
// keeps the type that it is stored in.
std::vector<StoredWeight> MergeLoraAdapter(std::span<const StoredWeight> weights,
                                           const LoraAdapter& adapter);

// The folder must not exist. Throws Error(kInvalidArgument) where the family fuses matrices that
// are not adapted together with one A.
void WriteLoraAdapter(const std::string& folder, const LoraAdapter& adapter,
                      const ModelConfig& config);

}  // namespace weft
