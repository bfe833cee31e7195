#include "language/gguf_config.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "language/gguf_keys.h"
#include "language/gguf_rope.h"
#include "language/gguf_tokenizer.h"
#include "language/hf_config.h"
#include "language/model_family.h"

namespace weft {
namespace {

constexpr std::string_view kFamilyKey = "weft.family";
constexpr std::string_view kWindowsKey = "weft.attention_windows";
constexpr std::string_view kGenerationKey = "weft.generation_config";

// Keys behind the architecture that are read here or in gguf_rope.cc, or say nothing that the
// tensors do not.
constexpr std::string_view kKnown[] = {"attention.head_count",
                                       "attention.head_count_kv",
                                       "attention.key_length",
                                       "attention.layer_norm_epsilon",
                                       "attention.layer_norm_rms_epsilon",
                                       "attention.scale",
                                       "attention.sliding_window",
                                       "attention.value_length",
                                       "attn_logit_softcapping",
                                       "block_count",
                                       "classifier.output_labels",
                                       "context_length",
                                       "embedding_length",
                                       "embedding_scale",
                                       "feed_forward_length",
                                       "final_logit_softcapping",
                                       "pooling_type",
                                       "rope.dimension_count",
                                       "rope.freq_base",
                                       "rope.scale_linear",
                                       "rope.scaling.attn_factor",
                                       "rope.scaling.factor",
                                       "rope.scaling.finetuned",
                                       "rope.scaling.original_context_length",
                                       "rope.scaling.type",
                                       "rope.scaling.yarn_beta_fast",
                                       "rope.scaling.yarn_beta_slow",
                                       "tensor_data_layout",
                                       "use_parallel_residual",
                                       "vocab_size"};

// Control tokens that end an answer where a file names no end of turn; as chat formats spell them.
constexpr std::string_view kEndsOfTurn[] = {"<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>"};

FeedForwardActivation UsualActivation(ModelFamily family) {
  switch (family) {
    case ModelFamily::kGemma:
    case ModelFamily::kGemma2:
    case ModelFamily::kGpt2:
      return FeedForwardActivation::kGeluTanh;
    case ModelFamily::kGptNeox:
      return FeedForwardActivation::kGelu;
    default:
      return FeedForwardActivation::kSilu;
  }
}

// llama.cpp's own rule, since the format has no key for it: only the 27B model divides by another
// number than the size of a head.
double UsualAttentionScale(const ModelConfig& config) {
  constexpr int64_t kLayersOf27B = 46;
  const double dimension =
      config.family == "gemma2" && config.layers == kLayersOf27B
          ? static_cast<double>(config.hidden) / static_cast<double>(config.heads)
          : static_cast<double>(config.head_dimension);
  return 1 / std::sqrt(dimension);
}

float EmbeddingScale(const ModelConfig& config) {
  const bool gemma = config.family == "gemma" || config.family == "gemma2";
  return gemma ? std::sqrt(static_cast<float>(config.hidden)) : 1.0f;
}

class GgufConfigReader {
 public:
  explicit GgufConfigReader(const GgufFile& file) : file_(file), keys_(file) {}

  ModelDescription Read() {
    const ModelFamily family = ReadFamily();
    CheckKeys();
    ReadSizes();
    ReadTensors();
    ReadOptions(family);
    ReadWindows(family);
    if (family != ModelFamily::kGpt2) ReadGgufRope(file_, prefix_, description_);
    ReadTokens();
    CheckModelSizes(config_, file_.name());
    return std::move(description_);
  }

 private:
  std::string Key(std::string_view name) const { return prefix_ + std::string(name); }
  std::optional<int64_t> Integer(std::string_view name, int64_t most) const {
    return keys_.Integer(Key(name), 1, most);
  }

  ModelFamily ReadFamily() {
    const auto architecture = keys_.String("general.architecture");
    if (!architecture) keys_.Fail("general.architecture", "is missing");
    prefix_ = *architecture + ".";
    const ModelFamilyInfo* family = nullptr;
    for (const ModelFamilyInfo& info : ModelFamilies()) {
      if (!family && info.gguf == *architecture) family = &info;
    }
    if (!family || architecture->empty()) {
      throw Error(
          ErrorCode::kInvalidArgument,
          file_.name() + ": general.architecture: \"" + architecture->substr(0, 100) +
              "\" is not supported; weft has llama, qwen2, qwen3, gemma, gemma2, phi3, gpt2 "
              "and gptneox");
    }
    // Mistral comes as llama.
    if (const auto name = keys_.String(kFamilyKey)) {
      const ModelFamilyInfo* named = FindModelFamily(*name);
      if (!named || named->gguf != *architecture) {
        keys_.Fail(kFamilyKey, "does not fit the architecture " + *architecture);
      }
      family = named;
    } else if (*architecture == "llama" && keys_.Has(Key("attention.sliding_window"))) {
      family = FindModelFamily("mistral");
    }
    config_.family = family->model_type;
    return family->family;
  }

  // Any other key of the architecture changes what the model computes, unless it says nothing.
  void CheckKeys() const {
    for (const auto& [key, value] : file_.metadata()) {
      if (!key.starts_with(prefix_)) continue;
      if (std::ranges::find(kKnown, std::string_view(key).substr(prefix_.size())) !=
          std::end(kKnown)) {
        continue;
      }
      double number = 1;
      bool flag = true;
      if ((value.GetDouble(number) && number == 0) || (value.GetBool(flag) && !flag)) continue;
      throw Error(ErrorCode::kInvalidArgument, file_.name() + ": " + key + " is not supported");
    }
  }

  void ReadSizes() {
    const auto required = [&](std::string_view name, int64_t most) {
      return keys_.RequiredInteger(Key(name), 1, most);
    };
    config_.layers = required("block_count", kMaxLayers);
    config_.hidden = required("embedding_length", kMaxHidden);
    config_.intermediate = required("feed_forward_length", kMaxHidden);
    config_.context = required("context_length", kMaxContext);
    config_.heads = required("attention.head_count", kMaxHeads);
    config_.kv_heads = Integer("attention.head_count_kv", kMaxHeads).value_or(config_.heads);
    const auto length = Integer("attention.key_length", kMaxHidden);
    if (!length && config_.hidden % config_.heads != 0) {
      keys_.Fail(Key("embedding_length"), "is no multiple of attention.head_count");
    }
    config_.head_dimension = length.value_or(config_.hidden / config_.heads);
    if (Integer("attention.value_length", kMaxHidden).value_or(config_.head_dimension) !=
        config_.head_dimension) {
      keys_.Fail(Key("attention.value_length"), "differs from attention.key_length");
    }
    const GgufTensor* tokens = file_.FindTensor("token_embd.weight");
    const GgufValue* list = file_.Find("tokenizer.ggml.tokens");
    if (const auto vocabulary = Integer("vocab_size", kMaxVocabulary)) {
      config_.vocabulary = *vocabulary;
    } else if (tokens && tokens->shape.size() == 2) {
      config_.vocabulary = tokens->shape[0];
    } else if (list && list->array) {
      config_.vocabulary = static_cast<int64_t>(std::min<uint64_t>(list->count, kMaxVocabulary));
    } else {
      keys_.Fail(Key("vocab_size"), "is missing");
    }
  }

  // Biases, tying and a score head show in the tensors alone.
  void ReadTensors() {
    const auto has = [&](const char* name) { return file_.FindTensor(name) != nullptr; };
    config_.qkv_bias = has("blk.0.attn_q.bias") || has("blk.0.attn_qkv.bias");
    config_.attention_output_bias = has("blk.0.attn_output.bias");
    config_.feed_forward_bias = has("blk.0.ffn_up.bias");
    if (const GgufTensor* score = file_.FindTensor("cls.output.weight")) {
      if (!score->shape.empty()) config_.labels = score->shape[0];
    }
    // Some files hold the embedding a second time.
    const GgufTensor* tokens = file_.FindTensor("token_embd.weight");
    const GgufTensor* output = file_.FindTensor("output.weight");
    config_.tied = !output || (tokens && tokens->type == output->type &&
                               std::ranges::equal(tokens->bytes, output->bytes));
  }

  void ReadOptions(ModelFamily family) {
    const bool plain = family == ModelFamily::kGpt2 || family == ModelFamily::kGptNeox;
    config_.norm = plain ? NormKind::kLayerNorm : NormKind::kRmsNorm;
    config_.gated = !plain;
    const std::string epsilon =
        Key(plain ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon");
    const auto value = keys_.Number(epsilon);
    if (!value) keys_.Fail(epsilon, "is missing");
    config_.norm_epsilon = static_cast<float>(*value);
    config_.activation = UsualActivation(family);
    config_.norm_offset = family == ModelFamily::kGemma || family == ModelFamily::kGemma2;
    config_.post_norms = family == ModelFamily::kGemma2;
    config_.query_key_norm = family == ModelFamily::kQwen3;
    config_.parallel_residual =
        family == ModelFamily::kGptNeox && keys_.Bool(Key("use_parallel_residual")).value_or(true);
    if (family == ModelFamily::kGpt2) config_.learned_positions = config_.context;
    config_.embedding_scale =
        static_cast<float>(keys_.Number(Key("embedding_scale")).value_or(EmbeddingScale(config_)));
    config_.attention_scale = static_cast<float>(
        keys_.Number(Key("attention.scale")).value_or(UsualAttentionScale(config_)));
    if (!(config_.attention_scale > 0)) keys_.Fail(Key("attention.scale"), "must be above 0");
    config_.attention_softcap =
        static_cast<float>(keys_.Number(Key("attn_logit_softcapping")).value_or(0));
    config_.final_softcap =
        static_cast<float>(keys_.Number(Key("final_logit_softcapping")).value_or(0));
  }

  void ReadWindows(ModelFamily family) {
    const auto layers = static_cast<size_t>(config_.layers);
    if (keys_.Has(kWindowsKey)) {
      config_.windows = keys_.Integers(kWindowsKey);
      if (config_.windows.size() != layers ||
          std::ranges::any_of(config_.windows, [](int64_t w) { return w < 0; })) {
        keys_.Fail(kWindowsKey, "must have one window per layer");
      }
      return;
    }
    const int64_t usual = family == ModelFamily::kGemma2 ? 4096 : 0;
    const int64_t window =
        keys_.Integer(Key("attention.sliding_window"), 0, kMaxContext).value_or(usual);
    config_.windows.assign(layers, 0);
    for (size_t i = 0; i < layers; ++i) {
      if (family != ModelFamily::kGemma2 || i % 2 == 0) config_.windows[i] = window;
    }
  }

  void ReadTokens() {
    const auto id = [&](std::string_view key) {
      return keys_.Integer(key, -1, config_.vocabulary - 1).value_or(-1);
    };
    config_.bos = id("tokenizer.ggml.bos_token_id");
    config_.pad = id("tokenizer.ggml.padding_token_id");
    const int64_t eos = id("tokenizer.ggml.eos_token_id"), turn = id("tokenizer.ggml.eot_token_id");
    if (eos >= 0) config_.eos.push_back(eos);
    if (turn >= 0 && turn != eos) config_.eos.push_back(turn);
    if (turn < 0) AddEndsOfTurn();

    GenerationDefaults& generation = description_.generation;
    generation.temperature = keys_.Number("general.sampling.temp");
    generation.top_p = keys_.Number("general.sampling.top_p");
    generation.min_p = keys_.Number("general.sampling.min_p");
    generation.repetition_penalty = keys_.Number("general.sampling.penalty_repeat");
    generation.top_k = keys_.Integer("general.sampling.top_k", 0, kMaxVocabulary);
    if (const auto text = keys_.String(kGenerationKey)) {
      const std::string name = file_.name() + ": " + std::string(kGenerationKey);
      ReadHfGeneration(ParseJson(*text, name), name, description_);
    }
  }

  void AddEndsOfTurn() {
    if (!file_.Find("tokenizer.ggml.tokens") || keys_.Has(kGenerationKey)) return;
    const std::vector<std::string> tokens = keys_.Strings("tokenizer.ggml.tokens");
    const std::vector<int64_t> types = keys_.Integers("tokenizer.ggml.token_type");
    for (size_t i = 0; i < std::min(tokens.size(), types.size()); ++i) {
      const auto token = static_cast<int64_t>(i);
      if (types[i] != static_cast<int64_t>(GgufTokenType::kControl) ||
          token >= config_.vocabulary ||
          std::ranges::find(kEndsOfTurn, tokens[i]) == std::end(kEndsOfTurn) ||
          std::ranges::find(config_.eos, token) != config_.eos.end()) {
        continue;
      }
      config_.eos.push_back(token);
    }
  }

  const GgufFile& file_;
  const GgufKeys keys_;
  std::string prefix_;
  ModelDescription description_;
  ModelConfig& config_ = description_.config;
};

}  // namespace

ModelDescription ReadGgufConfig(const GgufFile& file) {
  return GgufConfigReader(file).Read();
}

void SetGgufConfig(const ModelDescription& description, GgufWriter& writer) {
  const ModelConfig& config = description.config;
  const ModelFamilyInfo& family = FamilyOf(config);
  const std::string prefix = std::string(family.gguf) + ".";
  if (config.activation != UsualActivation(family.family)) {
    throw Error(ErrorCode::kInvalidArgument, "GGUF cannot say that a model of the family " +
                                                 config.family +
                                                 " has another activation than usual");
  }
  const bool plain = config.norm == NormKind::kLayerNorm;
  writer.SetU32(prefix + "context_length", config.context);
  writer.SetU32(prefix + "embedding_length", config.hidden);
  writer.SetU32(prefix + "block_count", config.layers);
  writer.SetU32(prefix + "feed_forward_length", config.intermediate);
  writer.SetU32(prefix + "attention.head_count", config.heads);
  writer.SetU32(prefix + "attention.head_count_kv", config.kv_heads);
  writer.SetU32(prefix + "attention.key_length", config.head_dimension);
  writer.SetU32(prefix + "attention.value_length", config.head_dimension);
  writer.SetF32(
      prefix + (plain ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"),
      static_cast<double>(config.norm_epsilon));
  writer.SetU32(prefix + "vocab_size", config.vocabulary);
  if (family.family == ModelFamily::kGptNeox) {
    writer.SetBool(prefix + "use_parallel_residual", config.parallel_residual);
  }
  if (config.attention_softcap > 0) {
    writer.SetF32(prefix + "attn_logit_softcapping", static_cast<double>(config.attention_softcap));
  }
  if (config.final_softcap > 0) {
    writer.SetF32(prefix + "final_logit_softcapping", static_cast<double>(config.final_softcap));
  }
  if (config.attention_scale != static_cast<float>(UsualAttentionScale(config))) {
    writer.SetF32(prefix + "attention.scale", static_cast<double>(config.attention_scale));
  }
  if (config.embedding_scale != EmbeddingScale(config)) {
    writer.SetF32(prefix + "embedding_scale", static_cast<double>(config.embedding_scale));
  }
  if (const int64_t window = std::ranges::max(config.windows); window > 0) {
    writer.SetU32(prefix + "attention.sliding_window", window);
    std::vector<int32_t> windows;
    for (const int64_t w : config.windows) windows.push_back(static_cast<int32_t>(w));
    writer.SetI32s(kWindowsKey, windows);
  }
  if (config.labels > 0) writer.SetU32(prefix + "pooling_type", 4);  // LLAMA_POOLING_TYPE_RANK
  writer.SetString(kFamilyKey, config.family);
  if (config.rope.rotary_dimensions > 0) SetGgufRope(description, prefix, writer);

  const GenerationDefaults& generation = description.generation;
  const auto set = [&](const char* key, const std::optional<double>& value) {
    if (value) writer.SetF32(key, *value);
  };
  if (generation.top_k) writer.SetU32("general.sampling.top_k", *generation.top_k);
  set("general.sampling.top_p", generation.top_p);
  set("general.sampling.min_p", generation.min_p);
  set("general.sampling.temp", generation.temperature);
  set("general.sampling.penalty_repeat", generation.repetition_penalty);
  writer.SetString(kGenerationKey, MakeHfGeneration(description).ToText());
}

}  // namespace weft
