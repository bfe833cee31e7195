#include "language/weight_layout.h"

#include <algorithm>
#include <map>
#include <span>

#include "base/check.h"
#include "language/model_family.h"

namespace weft {
namespace {

enum class Role : uint8_t {
  kTokens,
  kPositions,
  kInputNorm,
  kQuery,
  kKey,
  kValue,
  kOutput,
  kQueryNorm,
  kKeyNorm,
  kPostAttentionNorm,
  kFeedForwardNorm,
  kGate,
  kUp,
  kDown,
  kPostFeedForwardNorm,
  kFinalNorm,
  kHead,
  kScore,
};

// One name of a role; '#' stands for the number of the layer. Roles of one name are fused in it.
struct RoleName {
  Role role;
  std::string_view name;
};

constexpr RoleName kCanonical[] = {
    {Role::kTokens, "model.embed_tokens"},
    {Role::kPositions, "model.embed_positions"},
    {Role::kInputNorm, "model.layers.#.input_layernorm"},
    {Role::kQuery, "model.layers.#.self_attn.q_proj"},
    {Role::kKey, "model.layers.#.self_attn.k_proj"},
    {Role::kValue, "model.layers.#.self_attn.v_proj"},
    {Role::kOutput, "model.layers.#.self_attn.o_proj"},
    {Role::kQueryNorm, "model.layers.#.self_attn.q_norm"},
    {Role::kKeyNorm, "model.layers.#.self_attn.k_norm"},
    {Role::kPostAttentionNorm, "model.layers.#.post_attention_norm"},
    {Role::kFeedForwardNorm, "model.layers.#.post_attention_layernorm"},
    {Role::kGate, "model.layers.#.mlp.gate_proj"},
    {Role::kUp, "model.layers.#.mlp.up_proj"},
    {Role::kDown, "model.layers.#.mlp.down_proj"},
    {Role::kPostFeedForwardNorm, "model.layers.#.post_feedforward_norm"},
    {Role::kFinalNorm, "model.norm"},
    {Role::kHead, "lm_head"},
    {Role::kScore, "score"},
};

constexpr RoleName kHfGpt2[] = {
    {Role::kTokens, "transformer.wte"},
    {Role::kPositions, "transformer.wpe"},
    {Role::kInputNorm, "transformer.h.#.ln_1"},
    {Role::kQuery, "transformer.h.#.attn.c_attn"},
    {Role::kKey, "transformer.h.#.attn.c_attn"},
    {Role::kValue, "transformer.h.#.attn.c_attn"},
    {Role::kOutput, "transformer.h.#.attn.c_proj"},
    {Role::kFeedForwardNorm, "transformer.h.#.ln_2"},
    {Role::kUp, "transformer.h.#.mlp.c_fc"},
    {Role::kDown, "transformer.h.#.mlp.c_proj"},
    {Role::kFinalNorm, "transformer.ln_f"},
};

constexpr RoleName kHfGptNeox[] = {
    {Role::kTokens, "gpt_neox.embed_in"},
    {Role::kInputNorm, "gpt_neox.layers.#.input_layernorm"},
    {Role::kQuery, "gpt_neox.layers.#.attention.query_key_value"},
    {Role::kKey, "gpt_neox.layers.#.attention.query_key_value"},
    {Role::kValue, "gpt_neox.layers.#.attention.query_key_value"},
    {Role::kOutput, "gpt_neox.layers.#.attention.dense"},
    {Role::kFeedForwardNorm, "gpt_neox.layers.#.post_attention_layernorm"},
    {Role::kUp, "gpt_neox.layers.#.mlp.dense_h_to_4h"},
    {Role::kDown, "gpt_neox.layers.#.mlp.dense_4h_to_h"},
    {Role::kFinalNorm, "gpt_neox.final_layer_norm"},
    {Role::kHead, "embed_out"},
};

constexpr RoleName kHfOpt[] = {
    {Role::kTokens, "model.decoder.embed_tokens"},
    {Role::kPositions, "model.decoder.embed_positions"},
    {Role::kInputNorm, "model.decoder.layers.#.self_attn_layer_norm"},
    {Role::kQuery, "model.decoder.layers.#.self_attn.q_proj"},
    {Role::kKey, "model.decoder.layers.#.self_attn.k_proj"},
    {Role::kValue, "model.decoder.layers.#.self_attn.v_proj"},
    {Role::kOutput, "model.decoder.layers.#.self_attn.out_proj"},
    {Role::kFeedForwardNorm, "model.decoder.layers.#.final_layer_norm"},
    {Role::kUp, "model.decoder.layers.#.fc1"},
    {Role::kDown, "model.decoder.layers.#.fc2"},
    {Role::kFinalNorm, "model.decoder.final_layer_norm"},
};

constexpr RoleName kHfPhi3[] = {
    {Role::kQuery, "model.layers.#.self_attn.qkv_proj"},
    {Role::kKey, "model.layers.#.self_attn.qkv_proj"},
    {Role::kValue, "model.layers.#.self_attn.qkv_proj"},
    {Role::kGate, "model.layers.#.mlp.gate_up_proj"},
    {Role::kUp, "model.layers.#.mlp.gate_up_proj"},
};

constexpr RoleName kHfGemma2[] = {
    {Role::kPostAttentionNorm, "model.layers.#.post_attention_layernorm"},
    {Role::kFeedForwardNorm, "model.layers.#.pre_feedforward_layernorm"},
    {Role::kPostFeedForwardNorm, "model.layers.#.post_feedforward_layernorm"},
};

constexpr RoleName kGguf[] = {
    {Role::kTokens, "token_embd"},
    {Role::kPositions, "position_embd"},
    {Role::kInputNorm, "blk.#.attn_norm"},
    {Role::kQuery, "blk.#.attn_q"},
    {Role::kKey, "blk.#.attn_k"},
    {Role::kValue, "blk.#.attn_v"},
    {Role::kOutput, "blk.#.attn_output"},
    {Role::kQueryNorm, "blk.#.attn_q_norm"},
    {Role::kKeyNorm, "blk.#.attn_k_norm"},
    {Role::kPostAttentionNorm, "blk.#.post_attention_norm"},
    {Role::kFeedForwardNorm, "blk.#.ffn_norm"},
    {Role::kGate, "blk.#.ffn_gate"},
    {Role::kUp, "blk.#.ffn_up"},
    {Role::kDown, "blk.#.ffn_down"},
    {Role::kPostFeedForwardNorm, "blk.#.post_ffw_norm"},
    {Role::kFinalNorm, "output_norm"},
    {Role::kHead, "output"},
    {Role::kScore, "cls.output"},
};

constexpr RoleName kGgufFusedQkv[] = {
    {Role::kQuery, "blk.#.attn_qkv"},
    {Role::kKey, "blk.#.attn_qkv"},
    {Role::kValue, "blk.#.attn_qkv"},
};

constexpr RoleName kGgufPhi3[] = {
    {Role::kQuery, "blk.#.attn_qkv"}, {Role::kKey, "blk.#.attn_qkv"},
    {Role::kValue, "blk.#.attn_qkv"}, {Role::kGate, "blk.#.ffn_up"},
    {Role::kUp, "blk.#.ffn_up"},
};

// Names of a family, before those of the format that it shares with the others.
std::span<const RoleName> FamilyNames(ModelFamily family, FileFormat format) {
  if (format == FileFormat::kGguf) {
    if (family == ModelFamily::kPhi3) return kGgufPhi3;
    if (family == ModelFamily::kGpt2 || family == ModelFamily::kGptNeox) return kGgufFusedQkv;
    return {};
  }
  switch (family) {
    case ModelFamily::kGpt2:
      return kHfGpt2;
    case ModelFamily::kGptNeox:
      return kHfGptNeox;
    case ModelFamily::kOpt:
      return kHfOpt;
    case ModelFamily::kPhi3:
      return kHfPhi3;
    case ModelFamily::kGemma2:
      return kHfGemma2;
    default:
      return {};
  }
}

std::string_view NameOf(Role role, std::span<const RoleName> names) {
  const auto found = std::ranges::find(names, role, &RoleName::role);
  return found == names.end() ? std::string_view() : found->name;
}

std::string WithLayer(std::string_view name, int64_t layer) {
  const size_t mark = name.find('#');
  if (mark == std::string_view::npos) return std::string(name);
  return std::string(name.substr(0, mark)) + std::to_string(layer) +
         std::string(name.substr(mark + 1));
}

bool IsNorm(Role role) {
  return role == Role::kInputNorm || role == Role::kQueryNorm || role == Role::kKeyNorm ||
         role == Role::kPostAttentionNorm || role == Role::kFeedForwardNorm ||
         role == Role::kPostFeedForwardNorm || role == Role::kFinalNorm;
}

// A weight of a model: its role, its layer, and whether it is the bias.
struct ModelWeight {
  Role role;
  int64_t layer;
  bool bias;
  std::vector<int64_t> shape;
};

std::vector<ModelWeight> AllWeights(const ModelConfig& c) {
  std::vector<ModelWeight> weights;
  const auto add = [&](Role role, int64_t layer, std::vector<int64_t> shape, bool bias) {
    const int64_t out = shape[0];
    weights.push_back({role, layer, false, std::move(shape)});
    if (bias) weights.push_back({role, layer, true, {out}});
  };
  const bool norm_bias = c.norm == NormKind::kLayerNorm;
  const int64_t queries = c.heads * c.head_dimension, keys = c.kv_heads * c.head_dimension;
  add(Role::kTokens, 0, {c.vocabulary, c.hidden}, false);
  if (c.learned_positions > 0) add(Role::kPositions, 0, {c.learned_positions, c.hidden}, false);
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    add(Role::kInputNorm, layer, {c.hidden}, norm_bias);
    add(Role::kQuery, layer, {queries, c.hidden}, c.qkv_bias);
    add(Role::kKey, layer, {keys, c.hidden}, c.qkv_bias);
    add(Role::kValue, layer, {keys, c.hidden}, c.qkv_bias);
    add(Role::kOutput, layer, {c.hidden, queries}, c.attention_output_bias);
    if (c.query_key_norm) {
      add(Role::kQueryNorm, layer, {c.head_dimension}, false);
      add(Role::kKeyNorm, layer, {c.head_dimension}, false);
    }
    if (c.post_norms) add(Role::kPostAttentionNorm, layer, {c.hidden}, false);
    add(Role::kFeedForwardNorm, layer, {c.hidden}, norm_bias);
    if (c.gated) add(Role::kGate, layer, {c.intermediate, c.hidden}, c.feed_forward_bias);
    add(Role::kUp, layer, {c.intermediate, c.hidden}, c.feed_forward_bias);
    add(Role::kDown, layer, {c.hidden, c.intermediate}, c.feed_forward_bias);
    if (c.post_norms) add(Role::kPostFeedForwardNorm, layer, {c.hidden}, false);
  }
  add(Role::kFinalNorm, 0, {c.hidden}, norm_bias);
  if (c.labels > 0) {
    add(Role::kScore, 0, {c.labels, c.hidden}, false);
  } else if (!c.tied) {
    add(Role::kHead, 0, {c.vocabulary, c.hidden}, false);
  }
  return weights;
}

std::string FullName(std::string_view name, const ModelWeight& weight) {
  return WithLayer(name, weight.layer) + (weight.bias ? ".bias" : ".weight");
}

}  // namespace

std::vector<WeightSpec> ModelWeights(const ModelConfig& config) {
  std::vector<WeightSpec> specs;
  for (ModelWeight& weight : AllWeights(config)) {
    std::string name = FullName(NameOf(weight.role, kCanonical), weight);
    specs.push_back({std::move(name), std::move(weight.shape)});
  }
  return specs;
}

std::vector<StoredTensor> StoredLayout(const ModelConfig& config, FileFormat format) {
  const ModelFamilyInfo& family = FamilyOf(config);
  const bool gguf = format == FileFormat::kGguf;
  WEFT_CHECK(!gguf || !family.gguf.empty()) << "GGUF has no architecture for " << config.family;
  const auto names = FamilyNames(family.family, format);
  const auto common = gguf ? std::span<const RoleName>(kGguf) : kCanonical;
  const bool interleaved = !gguf && family.family == ModelFamily::kGptNeox;

  std::vector<StoredTensor> tensors;
  std::map<std::string, size_t, std::less<>> by_name;
  for (const ModelWeight& weight : AllWeights(config)) {
    std::string_view name = NameOf(weight.role, names);
    if (name.empty()) name = NameOf(weight.role, common);
    const auto [found, is_new] = by_name.emplace(FullName(name, weight), tensors.size());
    if (is_new) tensors.push_back({found->first, weight.shape});
    StoredTensor& tensor = tensors[found->second];
    StoredPart part{{FullName(NameOf(weight.role, kCanonical), weight), weight.shape}, {}};
    const bool attends = weight.role == Role::kQuery || weight.role == Role::kKey;
    if (interleaved && (attends || weight.role == Role::kValue)) {
      // [heads, 3, head_dimension]
      part.rows.first = config.head_dimension * static_cast<int64_t>(tensor.parts.size());
      part.rows.group = config.head_dimension;
      part.rows.stride = 3 * config.head_dimension;
    } else if (gguf && family.gguf == "llama" && attends) {
      part.rows.group = part.rows.stride = config.head_dimension;
      part.rows.permuted = true;
    } else if (!is_new) {
      part.rows.first = tensor.shape[0];
    }
    if (!is_new) tensor.shape[0] += weight.shape[0];
    if (gguf && config.norm_offset && IsNorm(weight.role)) tensor.offset = 1;
    tensor.parts.push_back(std::move(part));
  }
  if (!gguf && family.family == ModelFamily::kGpt2) {
    for (StoredTensor& tensor : tensors) {
      const bool matrix = tensor.shape.size() == 2 && tensor.name.find(".h.") != std::string::npos;
      if (!matrix) continue;
      tensor.transposed = true;
      std::swap(tensor.shape[0], tensor.shape[1]);
    }
  }
  return tensors;
}

std::string_view OptionalPrefix(const ModelConfig& config) {
  switch (FamilyOf(config).family) {
    case ModelFamily::kGpt2:
      return "transformer.";
    case ModelFamily::kOpt:
      return "model.";
    default:
      return "";
  }
}

bool IsIgnorableTensor(std::string_view name, FileFormat format) {
  if (format == FileFormat::kGguf) return false;
  constexpr std::string_view kBuffers[] = {".attn.bias",           ".attn.masked_bias",
                                           ".attention.bias",      ".attention.masked_bias",
                                           ".rotary_emb.inv_freq", "embeddings.position_ids"};
  return std::ranges::any_of(kBuffers,
                             [&](std::string_view suffix) { return name.ends_with(suffix); });
}

}  // namespace weft
