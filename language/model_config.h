// What a decoder-only transformer is, whatever file it came from: one network with named options
// instead of one class per family. Read from a Hugging Face config.json or from GGUF metadata
// (model_files.h); anything a file asks for that is not here is refused by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

enum class NormKind : uint8_t { kLayerNorm, kRmsNorm };
enum class FeedForwardActivation : uint8_t { kRelu, kGelu, kGeluTanh, kSilu };

// Rotary positions, rotate-half form: pair (i, i + rotary_dimensions / 2) turns by
// position * inverse_frequency[i]; cos and sin are multiplied by attention_factor.
struct RopeConfig {
  int64_t rotary_dimensions = 0;           // of each head; 0: no rotary positions
  std::vector<float> inverse_frequencies;  // [rotary_dimensions / 2], scaling applied
  float attention_factor = 1;
};

struct ModelConfig {
  std::string family;  // model_type: "llama", "gpt2", "mistral", "qwen2", "qwen3", "gemma",
                       // "gemma2", "phi3", "gpt_neox", "opt"
  int64_t vocabulary = 0;
  int64_t hidden = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dimension = 0;
  int64_t intermediate = 0;
  int64_t context = 0;  // max_position_embeddings

  NormKind norm = NormKind::kRmsNorm;
  float norm_epsilon = 1e-5f;
  bool norm_offset = false;        // the weight of an RMS norm is stored as w - 1 (Gemma)
  bool post_norms = false;         // norms after attention and feed-forward too (Gemma 2)
  bool query_key_norm = false;     // RMS norm of each head's q and k before rotation (Qwen 3)
  bool parallel_residual = false;  // attention and feed-forward both read the layer's input (NeoX)

  FeedForwardActivation activation = FeedForwardActivation::kSilu;
  bool gated = true;  // down(act(gate x) * up x), else down(act(up x))
  bool qkv_bias = false;
  bool attention_output_bias = false;
  bool feed_forward_bias = false;

  RopeConfig rope;
  int64_t learned_positions = 0;        // rows of the position table; 0: none
  int64_t learned_position_offset = 0;  // row of position 0 (OPT: 2)
  float embedding_scale = 1;     // of token embeddings (Gemma: sqrt(hidden), rounded as stored)
  float attention_scale = 0;     // of scores; 1 / sqrt(head_dimension) unless told otherwise
  float attention_softcap = 0;   // cap * tanh(score / cap); 0: none
  float final_softcap = 0;       // the same for logits
  std::vector<int64_t> windows;  // per layer: keys a query sees, itself included; 0: all
  bool tied = false;             // the output matrix is the embedding

  int64_t labels = 0;  // > 0: a score head [labels, hidden] instead of logits (classification)

  int64_t bos = -1, pad = -1;
  std::vector<int64_t> eos;
};

}  // namespace weft
