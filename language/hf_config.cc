#include "language/hf_config.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "language/encoder_config.h"
#include "language/hf_config_keys.h"
#include "language/hf_rope.h"
#include "language/json_keys.h"
#include "language/model_family.h"
#include "tensor/tensor.h"

namespace weft {
namespace {

class HfConfigReader {
 public:
  HfConfigReader(const JsonValue& json, const std::string& file) : keys_(json, file) {}

  ModelDescription Read() {
    const ModelFamilyInfo& family = ReadFamily();
    switch (family.family) {
      case ModelFamily::kGpt2:
        ReadGpt2();
        break;
      case ModelFamily::kGptNeox:
        ReadGptNeox();
        break;
      case ModelFamily::kOpt:
        ReadOpt();
        break;
      default:
        ReadLlamaLike(family.family);
    }
    ReadTokens();
    if (config_.attention_scale == 0) {
      config_.attention_scale =
          static_cast<float>(1 / std::sqrt(static_cast<double>(config_.head_dimension)));
    }
    if (config_.windows.empty()) config_.windows.assign(static_cast<size_t>(config_.layers), 0);
    CheckModelSizes(config_, keys_.file());
    ReportOtherKeys();
    return std::move(description_);
  }

 private:
  const ModelFamilyInfo& ReadFamily() {
    const auto type = keys_.String("model_type");
    if (!type) keys_.Fail("model_type", "is missing");
    const ModelFamilyInfo* family = FindModelFamily(*type);
    if (*type == kEncoderType) {
      keys_.Refuse("model_type",
                   "\"" + *type +
                       "\" is a text encoder, which has no next token to say or score; " +
                       "its embeddings are what the reward similarity compares (docs/rlhf.md)");
    }
    if (!family) {
      keys_.Refuse("model_type",
                   "\"" + *type + "\" is not supported; weft has " + ModelFamilyNames());
    }
    config_.family = *type;
    for (const std::string& name : keys_.Strings("architectures")) {
      if (name == family->classifier) {
        config_.labels = keys_.Integer("num_labels", 1, kMaxVocabulary).value_or(Labels());
      } else if (name != family->language_model) {
        keys_.Refuse("architectures", "\"" + name + "\" is not supported; of " + *type +
                                          " weft has " + std::string(family->language_model) +
                                          " and " + std::string(family->classifier));
      }
    }
    return *family;
  }

  // transformers counts id2label, and has 2 labels when there is none.
  int64_t Labels() {
    const JsonValue* labels = keys_.Find("id2label");
    if (!labels) return 2;
    if (!labels->IsObject() || labels->Members().empty())
      keys_.Fail("id2label", "must name labels");
    return static_cast<int64_t>(labels->Members().size());
  }

  void ReadSizes(const char* hidden, const char* layers, const char* heads, const char* context) {
    config_.vocabulary = keys_.RequiredInteger("vocab_size", 1, kMaxVocabulary);
    config_.hidden = keys_.RequiredInteger(hidden, 1, kMaxHidden);
    config_.layers = keys_.RequiredInteger(layers, 1, kMaxLayers);
    config_.heads = keys_.RequiredInteger(heads, 1, kMaxHeads);
    config_.kv_heads = config_.heads;
    config_.context = keys_.RequiredInteger(context, 1, kMaxContext);
  }

  void HeadsDivideHidden() {
    if (config_.hidden % config_.heads != 0) {
      throw Error(ErrorCode::kCorrupt, keys_.file() + ": hidden size " +
                                           std::to_string(config_.hidden) + " is no multiple of " +
                                           std::to_string(config_.heads) + " attention heads");
    }
    config_.head_dimension = config_.hidden / config_.heads;
  }

  float Epsilon(const char* key, double fallback) {
    return static_cast<float>(keys_.Number(key).value_or(fallback));
  }

  bool Flag(const char* key, bool fallback) { return keys_.Bool(key).value_or(fallback); }

  void Require(const char* key, bool value) { RequireHfFlag(keys_, key, value); }

  void ReadActivation(const char* key, const char* fallback) {
    config_.activation = ReadHfActivation(keys_, key, keys_.String(key).value_or(fallback));
  }

  void ReadLlamaLike(ModelFamily family) {
    const bool gemma = family == ModelFamily::kGemma || family == ModelFamily::kGemma2;
    ReadSizes("hidden_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings");
    config_.intermediate = keys_.RequiredInteger("intermediate_size", 1, kMaxHidden);
    config_.kv_heads = keys_.Integer("num_key_value_heads", 1, kMaxHeads).value_or(config_.heads);
    const int64_t usual_dimension = gemma ? 256 : family == ModelFamily::kQwen3 ? 128 : 0;
    if (const auto dimension = keys_.Integer("head_dim", 1, kMaxHidden)) {
      config_.head_dimension = *dimension;
    } else if (usual_dimension > 0) {
      config_.head_dimension = usual_dimension;
    } else {
      HeadsDivideHidden();
    }
    config_.norm_epsilon = Epsilon("rms_norm_eps", family == ModelFamily::kPhi3 ? 1e-5 : 1e-6);
    config_.tied = Flag("tie_word_embeddings", gemma);
    if (gemma) {
      ReadGemma(family);
    } else {
      ReadActivation("hidden_act", "silu");
    }
    ReadBiases(family);
    config_.query_key_norm = family == ModelFamily::kQwen3;
    ReadWindows(family);
    ReadHfRope(keys_, 10000, 1, description_);
  }

  void ReadBiases(ModelFamily family) {
    if (family == ModelFamily::kLlama) {
      config_.qkv_bias = config_.attention_output_bias = Flag("attention_bias", false);
      config_.feed_forward_bias = Flag("mlp_bias", false);
    } else if (family == ModelFamily::kQwen3) {
      config_.qkv_bias = config_.attention_output_bias = Flag("attention_bias", false);
    } else {
      Require("attention_bias", false);
      config_.qkv_bias = family == ModelFamily::kQwen2;
    }
  }

  void ReadGemma(ModelFamily family) {
    config_.norm_offset = true;
    // transformers takes hidden_activation, then the tanh form whatever the older hidden_act says.
    if (keys_.Has("hidden_activation")) {
      ReadActivation("hidden_activation", "");
    } else {
      config_.activation = FeedForwardActivation::kGeluTanh;
    }
    if (const auto act = keys_.String("hidden_act")) {
      if (*act != "gelu" && *act != "gelu_pytorch_tanh")
        ReadHfActivation(keys_, "hidden_act", *act);
    }
    // The multiplier has the type of the weights.
    const auto scale = static_cast<float>(std::sqrt(static_cast<double>(config_.hidden)));
    const auto type =
        keys_.String("dtype").value_or(keys_.String("torch_dtype").value_or("float32"));
    config_.embedding_scale = type == "bfloat16" ? ToFloat(ToBFloat16(scale)) : scale;
    if (family == ModelFamily::kGemma) return;
    config_.post_norms = true;
    const double scalar = keys_.Number("query_pre_attn_scalar").value_or(256);
    if (!(scalar > 0)) keys_.Fail("query_pre_attn_scalar", "must be above 0");
    config_.attention_scale = static_cast<float>(1 / std::sqrt(scalar));
    config_.attention_softcap = Cap("attn_logit_softcapping", 50);
    config_.final_softcap = Cap("final_logit_softcapping", 30);
  }

  float Cap(const char* key, double fallback) {
    if (keys_.IsNull(key)) return 0;
    const double cap = keys_.Number(key).value_or(fallback);
    if (!(cap > 0)) keys_.Fail(key, "must be above 0");
    return static_cast<float>(cap);
  }

  // Which layers see only the nearest keys: layer_types when it is there, else by family.
  void ReadWindows(ModelFamily family) {
    if (family == ModelFamily::kLlama || family == ModelFamily::kGemma) return;
    const bool usual = family == ModelFamily::kMistral || family == ModelFamily::kGemma2;
    int64_t window = keys_.Integer("sliding_window", 1, kMaxContext).value_or(0);
    if (window == 0 && usual && !keys_.IsNull("sliding_window")) window = 4096;
    const bool qwen = family == ModelFamily::kQwen2 || family == ModelFamily::kQwen3;
    const auto first = keys_.Integer("max_window_layers", 0, kMaxContext).value_or(28);
    if (qwen && !Flag("use_sliding_window", false)) window = 0;
    const auto layers = static_cast<size_t>(config_.layers);
    config_.windows.assign(layers, 0);
    const std::vector<std::string> types = keys_.Strings("layer_types");
    if (!types.empty() && types.size() != layers) {
      keys_.Fail("layer_types", "has " + std::to_string(types.size()) + " entries for " +
                                    std::to_string(layers) + " layers");
    }
    for (size_t i = 0; i < layers; ++i) {
      bool slides = !types.empty()                   ? types[i] == "sliding_attention"
                    : family == ModelFamily::kGemma2 ? i % 2 == 0
                    : qwen                           ? static_cast<int64_t>(i) >= first
                                                     : true;
      if (!types.empty() && !slides && types[i] != "full_attention") {
        keys_.Refuse("layer_types", "\"" + types[i] + "\" is not supported");
      }
      if (!types.empty() && slides && window == 0) {
        keys_.Fail("sliding_window", "is missing, layer_types has sliding_attention");
      }
      if (slides) config_.windows[i] = window;
    }
  }

  void ReadPlain() {
    config_.norm = NormKind::kLayerNorm;
    config_.gated = false;
    config_.qkv_bias = config_.attention_output_bias = config_.feed_forward_bias = true;
  }

  void ReadGpt2() {
    ReadPlain();
    ReadSizes("n_embd", "n_layer", "n_head", "n_positions");
    HeadsDivideHidden();
    config_.intermediate = keys_.Integer("n_inner", 1, kMaxHidden).value_or(4 * config_.hidden);
    config_.norm_epsilon = Epsilon("layer_norm_epsilon", 1e-5);
    ReadActivation("activation_function", "gelu_new");
    config_.tied = Flag("tie_word_embeddings", true);
    config_.learned_positions = config_.context;
    if (!Flag("scale_attn_weights", true)) config_.attention_scale = 1;
  }

  void ReadGptNeox() {
    ReadPlain();
    ReadSizes("hidden_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings");
    HeadsDivideHidden();
    config_.intermediate = keys_.RequiredInteger("intermediate_size", 1, kMaxHidden);
    config_.norm_epsilon = Epsilon("layer_norm_eps", 1e-5);
    ReadActivation("hidden_act", "gelu");
    config_.tied = Flag("tie_word_embeddings", false);
    config_.qkv_bias = config_.attention_output_bias = Flag("attention_bias", true);
    config_.parallel_residual = Flag("use_parallel_residual", true);
    const double theta = keys_.Number("rotary_emb_base").value_or(10000);
    if (!(theta > 0)) keys_.Fail("rotary_emb_base", "must be above 0");
    ReadHfRope(keys_, theta, keys_.Number("rotary_pct").value_or(0.25), description_);
  }

  void ReadOpt() {
    ReadPlain();
    ReadSizes("hidden_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings");
    HeadsDivideHidden();
    config_.intermediate = keys_.RequiredInteger("ffn_dim", 1, kMaxHidden);
    ReadActivation("activation_function", "relu");
    config_.tied = Flag("tie_word_embeddings", true);
    config_.qkv_bias = config_.attention_output_bias = config_.feed_forward_bias =
        Flag("enable_bias", true);
    Require("do_layer_norm_before", true);
    Require("_remove_final_layer_norm", false);
    Require("layer_norm_elementwise_affine", true);
    const auto projected = keys_.Integer("word_embed_proj_dim", 1, kMaxHidden);
    if (projected.value_or(config_.hidden) != config_.hidden) {
      keys_.Refuse("word_embed_proj_dim", "another size than hidden_size is not supported");
    }
    config_.learned_position_offset = 2;
    config_.learned_positions = config_.context + config_.learned_position_offset;
  }

  void ReadTokens() {
    const auto id = [&](const char* key) {
      return keys_.Integer(key, -1, kMaxVocabulary).value_or(-1);
    };
    config_.bos = id("bos_token_id");
    config_.pad = id("pad_token_id");
    config_.eos = keys_.Integers("eos_token_id", 0, kMaxVocabulary);
  }

  void ReportOtherKeys() {
    for (const char* key : {"id2label", "num_labels", "rope_theta", "sliding_window", "head_dim"}) {
      keys_.Find(key);
    }
    ReportOtherHfKeys(keys_);
  }

  JsonKeys keys_;
  ModelDescription description_;
  ModelConfig& config_ = description_.config;
};

}  // namespace

ModelDescription ReadHfConfig(const JsonValue& json, const std::string& file) {
  return HfConfigReader(json, file).Read();
}

void ReadHfGeneration(const JsonValue& json, const std::string& file,
                      ModelDescription& description) {
  JsonKeys keys(json, file);
  GenerationDefaults& generation = description.generation;
  generation.do_sample = keys.Bool("do_sample");
  generation.temperature = keys.Number("temperature");
  generation.top_p = keys.Number("top_p");
  generation.min_p = keys.Number("min_p");
  generation.repetition_penalty = keys.Number("repetition_penalty");
  generation.top_k = keys.Integer("top_k", 0, kMaxVocabulary);
  generation.max_new_tokens = keys.Integer("max_new_tokens", 1, kMaxContext);
  ModelConfig& config = description.config;
  config.bos = keys.Integer("bos_token_id", -1, kMaxVocabulary).value_or(config.bos);
  config.pad = keys.Integer("pad_token_id", -1, kMaxVocabulary).value_or(config.pad);
  if (keys.Has("eos_token_id")) config.eos = keys.Integers("eos_token_id", 0, kMaxVocabulary);
  CheckModelSizes(config, file);
}

}  // namespace weft
