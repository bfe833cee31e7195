// The writing half of hf_config.h.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "language/hf_config.h"
#include "language/hf_rope.h"
#include "language/model_family.h"

namespace weft {
namespace {

JsonValue Ids(const std::vector<int64_t>& ids) {
  if (ids.empty()) return JsonValue();
  if (ids.size() == 1) return JsonValue(ids[0]);
  std::vector<JsonValue> values;
  for (const int64_t id : ids) values.emplace_back(id);
  return JsonValue::MakeArray(std::move(values));
}

JsonValue Id(int64_t id) {
  return id < 0 ? JsonValue() : JsonValue(id);
}

// In the spelling of the family's own code.
const char* ActivationName(const ModelConfig& config) {
  switch (config.activation) {
    case FeedForwardActivation::kRelu:
      return "relu";
    case FeedForwardActivation::kGelu:
      return "gelu";
    case FeedForwardActivation::kSilu:
      return "silu";
    case FeedForwardActivation::kGeluTanh:
      return config.family == "gpt2" ? "gelu_new" : "gelu_pytorch_tanh";
  }
  return "";
}

const char* TypeName(WeightType type) {
  switch (type) {
    case WeightType::kF16:
      return "float16";
    case WeightType::kBF16:
      return "bfloat16";
    default:
      return "float32";
  }
}

void SetSizes(const ModelConfig& c, const char* hidden, const char* layers, const char* heads,
              const char* context, JsonValue& json) {
  json.Set("vocab_size", JsonValue(c.vocabulary));
  json.Set(hidden, JsonValue(c.hidden));
  json.Set(layers, JsonValue(c.layers));
  json.Set(heads, JsonValue(c.heads));
  json.Set(context, JsonValue(c.context));
}

void SetGpt2(const ModelConfig& c, JsonValue& json) {
  SetSizes(c, "n_embd", "n_layer", "n_head", "n_positions", json);
  json.Set("n_inner", c.intermediate == 4 * c.hidden ? JsonValue() : JsonValue(c.intermediate));
  json.Set("layer_norm_epsilon", JsonValue(c.norm_epsilon));
  json.Set("activation_function", JsonValue(ActivationName(c)));
  const auto usual = static_cast<float>(1 / std::sqrt(static_cast<double>(c.head_dimension)));
  json.Set("scale_attn_weights", JsonValue(c.attention_scale == usual));
}

void SetGptNeox(const ModelDescription& description, JsonValue& json) {
  const ModelConfig& c = description.config;
  SetSizes(c, "hidden_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings",
           json);
  json.Set("intermediate_size", JsonValue(c.intermediate));
  json.Set("layer_norm_eps", JsonValue(c.norm_epsilon));
  json.Set("hidden_act", JsonValue(ActivationName(c)));
  json.Set("attention_bias", JsonValue(c.qkv_bias));
  json.Set("use_parallel_residual", JsonValue(c.parallel_residual));
  json.Set("rotary_emb_base", JsonValue(description.rope.theta));
}

void SetOpt(const ModelConfig& c, JsonValue& json) {
  SetSizes(c, "hidden_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings",
           json);
  json.Set("ffn_dim", JsonValue(c.intermediate));
  json.Set("word_embed_proj_dim", JsonValue(c.hidden));
  json.Set("activation_function", JsonValue(ActivationName(c)));
  json.Set("do_layer_norm_before", JsonValue(true));
  json.Set("enable_bias", JsonValue(c.qkv_bias));
}

// sliding_window, and layer_types where the family's own rule gives other layers.
void SetWindows(ModelFamily family, const ModelConfig& c, JsonValue& json) {
  if (family == ModelFamily::kLlama || family == ModelFamily::kGemma) return;
  const int64_t window = c.windows.empty() ? 0 : std::ranges::max(c.windows);
  json.Set("sliding_window", window > 0 ? JsonValue(window) : JsonValue());
  const bool qwen = family == ModelFamily::kQwen2 || family == ModelFamily::kQwen3;
  if (qwen) json.Set("use_sliding_window", JsonValue(window > 0));
  if (!qwen && family != ModelFamily::kGemma2) return;
  std::vector<JsonValue> types;
  for (const int64_t w : c.windows) {
    types.emplace_back(w > 0 ? "sliding_attention" : "full_attention");
  }
  json.Set("layer_types", JsonValue::MakeArray(std::move(types)));
}

void SetLlamaLike(ModelFamily family, const ModelConfig& c, JsonValue& json) {
  SetSizes(c, "hidden_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings",
           json);
  json.Set("intermediate_size", JsonValue(c.intermediate));
  json.Set("num_key_value_heads", JsonValue(c.kv_heads));
  // Families without the key divide the hidden size, and other code stumbles over it.
  const bool implied = family == ModelFamily::kQwen2 || family == ModelFamily::kPhi3;
  if (!implied || c.head_dimension * c.heads != c.hidden) {
    json.Set("head_dim", JsonValue(c.head_dimension));
  }
  json.Set("rms_norm_eps", JsonValue(c.norm_epsilon));
  // Gemma's key was renamed and renamed back.
  const bool gemma = family == ModelFamily::kGemma, gemma2 = family == ModelFamily::kGemma2;
  if (!gemma2) json.Set("hidden_act", JsonValue(ActivationName(c)));
  if (gemma || gemma2) json.Set("hidden_activation", JsonValue(ActivationName(c)));
  if (family == ModelFamily::kPhi3) {
    json.Set("original_max_position_embeddings", JsonValue(c.context));
  }
  if (family == ModelFamily::kLlama || family == ModelFamily::kQwen3) {
    json.Set("attention_bias", JsonValue(c.qkv_bias));
  }
  if (family == ModelFamily::kLlama) json.Set("mlp_bias", JsonValue(c.feed_forward_bias));
  if (family == ModelFamily::kGemma2) {
    const double scale = static_cast<double>(c.attention_scale);
    const double scalar = 1 / (scale * scale), whole = std::round(scalar);
    json.Set("query_pre_attn_scalar", std::abs(scalar - whole) < 1e-3
                                          ? JsonValue(static_cast<int64_t>(whole))
                                          : JsonValue(scalar));
    const auto cap = [](float value) { return value > 0 ? JsonValue(value) : JsonValue(); };
    json.Set("attn_logit_softcapping", cap(c.attention_softcap));
    json.Set("final_logit_softcapping", cap(c.final_softcap));
  }
  SetWindows(family, c, json);
}

// A share of a head from which the reader's multiplication gives the same whole number.
double RotaryFraction(const ModelConfig& c) {
  const auto whole = static_cast<double>(c.head_dimension);
  const double fraction = static_cast<double>(c.rope.rotary_dimensions) / whole;
  return static_cast<int64_t>(whole * fraction) == c.rope.rotary_dimensions
             ? fraction
             : std::nextafter(fraction, 1.0);
}

}  // namespace

JsonValue MakeHfConfig(const ModelDescription& description, WeightType type) {
  const ModelConfig& c = description.config;
  const ModelFamilyInfo& family = FamilyOf(c);
  JsonValue json = JsonValue::MakeObject();
  json.Set("architectures",
           JsonValue::MakeArray(
               {JsonValue(std::string(c.labels > 0 ? family.classifier : family.language_model))}));
  json.Set("model_type", JsonValue(c.family));
  switch (family.family) {
    case ModelFamily::kGpt2:
      SetGpt2(c, json);
      break;
    case ModelFamily::kGptNeox:
      SetGptNeox(description, json);
      break;
    case ModelFamily::kOpt:
      SetOpt(c, json);
      break;
    default:
      SetLlamaLike(family.family, c, json);
  }
  if (c.rope.rotary_dimensions > 0) {
    SetHfRope(description, json);
    if (c.rope.rotary_dimensions != c.head_dimension || family.family == ModelFamily::kGptNeox) {
      const char* key =
          family.family == ModelFamily::kGptNeox ? "rotary_pct" : "partial_rotary_factor";
      json.Set(key, JsonValue(RotaryFraction(c)));
    }
  }
  json.Set("tie_word_embeddings", JsonValue(c.tied));
  json.Set("bos_token_id", Id(c.bos));
  json.Set("eos_token_id", Ids(c.eos));
  json.Set("pad_token_id", Id(c.pad));
  if (c.labels > 0) {
    JsonValue names = JsonValue::MakeObject(), numbers = JsonValue::MakeObject();
    for (int64_t i = 0; i < c.labels; ++i) {
      const std::string label = "LABEL_" + std::to_string(i);
      names.Set(std::to_string(i), JsonValue(label));
      numbers.Set(label, JsonValue(i));
    }
    json.Set("id2label", std::move(names));
    json.Set("label2id", std::move(numbers));
  }
  json.Set("torch_dtype", JsonValue(TypeName(type)));
  json.Set("use_cache", JsonValue(true));
  return json;
}

JsonValue MakeHfGeneration(const ModelDescription& description) {
  const GenerationDefaults& generation = description.generation;
  JsonValue json = JsonValue::MakeObject();
  const auto number = [&](const char* key, const std::optional<double>& value) {
    if (value) json.Set(key, JsonValue(*value));
  };
  const auto integer = [&](const char* key, const std::optional<int64_t>& value) {
    if (value) json.Set(key, JsonValue(*value));
  };
  json.Set("bos_token_id", Id(description.config.bos));
  json.Set("eos_token_id", Ids(description.config.eos));
  json.Set("pad_token_id", Id(description.config.pad));
  if (generation.do_sample) json.Set("do_sample", JsonValue(*generation.do_sample));
  number("temperature", generation.temperature);
  integer("top_k", generation.top_k);
  number("top_p", generation.top_p);
  number("min_p", generation.min_p);
  number("repetition_penalty", generation.repetition_penalty);
  integer("max_new_tokens", generation.max_new_tokens);
  return json;
}

}  // namespace weft
