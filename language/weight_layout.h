// Which weights a model has, and how a file lays them out.
//
// Canonical names are those of Llama in transformers, for all families:
//   model.embed_tokens.weight                                   [vocabulary, hidden]
//   model.embed_positions.weight                                [learned_positions, hidden]
//   model.layers.N.input_layernorm.{weight,bias}                before attention
//   model.layers.N.self_attn.{q,k,v,o}_proj.{weight,bias}       [heads * head_dimension, hidden],
//   ... model.layers.N.self_attn.{q,k}_norm.weight                  [head_dimension] (Qwen 3)
//   model.layers.N.post_attention_norm.weight                   on attention's output (Gemma 2)
//   model.layers.N.post_attention_layernorm.{weight,bias}       before the feed-forward
//   model.layers.N.mlp.{gate,up,down}_proj.{weight,bias}        [intermediate, hidden], ...
//   model.layers.N.post_feedforward_norm.weight                 on its output (Gemma 2)
//   model.norm.{weight,bias}
//   lm_head.weight                                              unless tied or a classifier
//   score.weight                                                [labels, hidden], of a classifier
// Where the families of transformers use other names, which the readers and writers translate:
//   canonical                  gpt2          gpt_neox                   opt gemma2 embed_tokens wte
//   embed_in                   embed_tokens input_layernorm            ln_1 input_layernorm
//   self_attn_layer_norm q_proj, k_proj, v_proj     attn.c_attn   attention.query_key_value q_proj,
//   k_proj, v_proj o_proj                     attn.c_proj   attention.dense            out_proj
//   post_attention_norm                                            post_attention_layernorm
//   post_attention_layernorm   ln_2          post_attention_layernorm   final_layer_norm
//                                                                  pre_feedforward_layernorm
//   up_proj, down_proj         mlp.c_fc,     mlp.dense_h_to_4h,         fc1, fc2
//                              mlp.c_proj    mlp.dense_4h_to_h
//   post_feedforward_norm                                          post_feedforward_layernorm
//   norm                       ln_f          final_layer_norm           final_layer_norm
//   lm_head                    lm_head       embed_out                  lm_head
// GPT-2 stores its matrices transposed and q, k, v fused; Phi-3 fuses q, k, v and gate, up;
// GPT-NeoX interleaves q, k, v by head. GGUF has names of its own, permutes the rows of q and k of
// Llama and Mistral, and stores Gemma's norms with 1 added.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "language/model_config.h"

namespace weft {

enum class FileFormat : uint8_t { kHuggingFace, kGguf };

struct WeightSpec {
  std::string name;            // canonical
  std::vector<int64_t> shape;  // [out, in] or [n]
};

// All weights of a model in the order above.
std::vector<WeightSpec> ModelWeights(const ModelConfig& config);

// Where canonical row r of a weight stands in the stored tensor: rows come in groups, and inside a
// group of a permuted weight rows i and i + group / 2 stand side by side (GGUF's rope order). The
// elements of a vector count as rows of one.
struct RowMap {
  int64_t first = 0;   // stored row of canonical row 0
  int64_t group = 0;   // rows of a group; 0: one group of all rows
  int64_t stride = 0;  // from one group to the next in the stored tensor
  bool permuted = false;

  int64_t Stored(int64_t row) const {
    if (group == 0) return first + row;
    const int64_t inside = row % group;
    const int64_t half = group / 2;
    const int64_t place = permuted ? 2 * (inside % half) + inside / half : inside;
    return first + row / group * stride + place;
  }
};

struct StoredPart {
  WeightSpec weight;
  RowMap rows;
};

struct StoredTensor {
  std::string name;               // in the file
  std::vector<int64_t> shape;     // as the file has it, outermost first
  bool transposed = false;        // [in, out]
  float offset = 0;               // stored = canonical + offset
  std::vector<StoredPart> parts;  // the weights in it, together all of its rows
};

// Every tensor of a file of this model, in the order of ModelWeights. GGUF needs a family that it
// has (model_family.h).
std::vector<StoredTensor> StoredLayout(const ModelConfig& config, FileFormat format);

// What stands before names of weights in transformers and may be missing in older files:
// "transformer." (GPT-2), "model." (OPT), else "".
std::string_view OptionalPrefix(const ModelConfig& config);

// Buffers that older versions of transformers saved beside the weights.
bool IsIgnorableTensor(std::string_view name, FileFormat format);

}  // namespace weft
