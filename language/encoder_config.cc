#include "language/encoder_config.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/file.h"
#include "language/hf_config_keys.h"
#include "language/json_keys.h"
#include "language/model_family.h"

namespace weft {
namespace {

void ReadModel(const std::string& folder, EncoderConfig& config) {
  const std::string file = folder + "/config.json";
  const JsonValue json = ReadJsonFile(file);
  JsonKeys keys(json, file);
  const std::string type = keys.RequiredString("model_type");
  if (type != kEncoderType) {
    keys.Refuse("model_type", "\"" + type + "\" is no text encoder that weft has, which is " +
                                  std::string(kEncoderType));
  }
  for (const std::string& name : keys.Strings("architectures")) {
    if (name != "BertModel" && name != "BertForMaskedLM" && name != "BertForPreTraining") {
      keys.Refuse("architectures", "\"" + name +
                                       "\" is not supported; of bert weft has BertModel, "
                                       "BertForMaskedLM and BertForPreTraining");
    }
  }
  config.vocabulary = keys.RequiredInteger("vocab_size", 1, kMaxVocabulary);
  config.hidden = keys.RequiredInteger("hidden_size", 1, kMaxHidden);
  config.layers = keys.RequiredInteger("num_hidden_layers", 1, kMaxLayers);
  config.heads = keys.RequiredInteger("num_attention_heads", 1, kMaxHeads);
  config.intermediate = keys.RequiredInteger("intermediate_size", 1, kMaxHidden);
  config.positions = keys.RequiredInteger("max_position_embeddings", 1, kMaxContext);
  config.token_types = keys.Integer("type_vocab_size", 1, kMaxVocabulary).value_or(2);
  if (config.hidden % config.heads != 0) {
    keys.Fail("hidden_size", "is " + std::to_string(config.hidden) + ", no multiple of " +
                                 std::to_string(config.heads) + " attention heads");
  }
  config.activation =
      ReadHfActivation(keys, "hidden_act", keys.String("hidden_act").value_or("gelu"));
  const double epsilon = keys.Number("layer_norm_eps").value_or(1e-12);
  if (!(epsilon >= 0)) keys.Fail("layer_norm_eps", "must not be negative");
  config.norm_epsilon = static_cast<float>(epsilon);
  if (const auto kind = keys.String("position_embedding_type").value_or("absolute");
      kind != "absolute") {
    keys.Refuse("position_embedding_type", "\"" + kind + "\" is not supported; weft has absolute");
  }
  RequireHfFlag(keys, "is_decoder", false);
  for (const char* key : {"id2label", "num_labels", "pad_token_id"}) keys.Find(key);
  ReportOtherHfKeys(keys);
}

// How many tokens a text may have: what sentence-transformers says, else what the tokenizer does,
// at most the model's positions.
void ReadLength(const std::string& folder, EncoderConfig& config) {
  config.max_tokens = config.positions;
  if (const std::string file = folder + "/sentence_bert_config.json"; FileExists(file)) {
    const JsonValue json = ReadJsonFile(file);
    JsonKeys keys(json, file);
    RequireHfFlag(keys, "do_lower_case", false);
    if (const auto length = keys.Integer("max_seq_length", 1, config.positions)) {
      config.max_tokens = *length;
      return;
    }
  }
  if (const std::string file = folder + "/tokenizer_config.json"; FileExists(file)) {
    const JsonValue json = ReadJsonFile(file);
    JsonKeys keys(json, file);
    // Where there is no limit the library writes 1e30.
    const double length = keys.Number("model_max_length").value_or(1e30);
    if (!(length >= 1)) keys.Fail("model_max_length", "must be 1 at least");
    if (length < static_cast<double>(config.positions)) {
      config.max_tokens = static_cast<int64_t>(length);
    }
  }
}

void ReadPooling(const std::string& folder, EncoderConfig& config) {
  const std::string file = folder + "/config.json";
  const JsonValue json = ReadJsonFile(file);
  JsonKeys keys(json, file);
  const int64_t width =
      keys.Integer("word_embedding_dimension", 1, kMaxHidden).value_or(config.hidden);
  if (width != config.hidden) {
    keys.Fail("word_embedding_dimension", "is " + std::to_string(width) +
                                              ", the model's hidden size " +
                                              std::to_string(config.hidden));
  }
  constexpr std::pair<const char*, Pooling> kModes[] = {
      {"pooling_mode_mean_tokens", Pooling::kMean},
      {"pooling_mode_cls_token", Pooling::kFirst},
      {"pooling_mode_max_tokens", Pooling::kMax}};
  int chosen = 0;
  for (const auto& [key, pooling] : kModes) {
    if (!keys.Bool(key).value_or(false)) continue;
    config.pooling = pooling;
    ++chosen;
  }
  for (const auto& [key, value] : json.Members()) {
    const bool ours =
        std::ranges::any_of(kModes, [&key = key](const auto& m) { return key == m.first; });
    const bool off = value.IsNull() || (value.IsBool() && !value.AsBool());
    if (key.starts_with("pooling_mode") && !ours && !off) keys.Refuse(key, "is not supported");
  }
  if (chosen != 1) {
    keys.Refuse("pooling_mode_*", "one of mean_tokens, cls_token and max_tokens must be true, " +
                                      std::to_string(chosen) + " are");
  }
}

// The steps from a text to its embedding, in order.
void ReadModules(const std::string& folder, EncoderConfig& config) {
  const std::string file = folder + "/modules.json";
  if (!FileExists(file)) return;
  const JsonValue json = ReadJsonFile(file);
  if (!json.IsArray()) {
    throw Error(ErrorCode::kCorrupt,
                file + ": must be an array, not " + std::string(json.KindName()));
  }
  constexpr std::array<std::string_view, 3> kSteps = {"Transformer", "Pooling", "Normalize"};
  const auto steps = json.Items();
  if (steps.size() < 2) {
    throw Error(ErrorCode::kInvalidArgument,
                file + ": an encoder without Pooling behind its Transformer is not supported");
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    JsonKeys keys(steps[i], file, "[" + std::to_string(i) + "].");
    const std::string type = keys.RequiredString("type"), path = keys.RequiredString("path");
    const std::string name = type.substr(type.find_last_of('.') + 1);
    if (i >= kSteps.size() || name != kSteps[i]) {
      keys.Refuse("type", "\"" + type +
                              "\" is not supported in this place; weft has Transformer, Pooling "
                              "and perhaps Normalize, in this order");
    }
    if (i == 0 && !path.empty()) {
      keys.Refuse("path", "\"" + path + "\" is not supported: the model must lie beside the file");
    }
    if (i == 1) {
      if (path.empty() || path.starts_with('.') || path.find('/') != std::string::npos ||
          path.find('\0') != std::string::npos) {
        keys.Fail("path", "must be the name of a folder beside the file");
      }
      ReadPooling(folder + "/" + path, config);
    }
    config.normalise = i == 2;
  }
}

}  // namespace

EncoderConfig ReadEncoderConfig(const std::string& folder) {
  if (!DirectoryExists(folder)) {
    throw Error(ErrorCode::kConfig, folder +
                                        " is no text encoder: that is a Hugging Face folder with "
                                        "config.json, model.safetensors and tokenizer.json");
  }
  EncoderConfig config;
  ReadModel(folder, config);
  ReadLength(folder, config);
  ReadModules(folder, config);
  return config;
}

std::vector<WeightSpec> EncoderWeights(const EncoderConfig& config) {
  std::vector<WeightSpec> weights;
  const auto matrix = [&](const std::string& name, int64_t out, int64_t in) {
    weights.push_back({"bert." + name + ".weight", {out, in}});
  };
  const auto vector = [&](const std::string& name, int64_t size) {
    weights.push_back({"bert." + name, {size}});
  };
  const auto linear = [&](const std::string& name, int64_t out, int64_t in) {
    matrix(name, out, in);
    vector(name + ".bias", out);
  };
  const auto norm = [&](const std::string& name) {
    vector(name + ".LayerNorm.weight", config.hidden);
    vector(name + ".LayerNorm.bias", config.hidden);
  };
  const int64_t hidden = config.hidden;
  matrix("embeddings.word_embeddings", config.vocabulary, hidden);
  matrix("embeddings.position_embeddings", config.positions, hidden);
  matrix("embeddings.token_type_embeddings", config.token_types, hidden);
  norm("embeddings");
  for (int64_t i = 0; i < config.layers; ++i) {
    const std::string layer = "encoder.layer." + std::to_string(i) + ".";
    for (const char* part : {"query", "key", "value"}) {
      linear(layer + "attention.self." + part, hidden, hidden);
    }
    linear(layer + "attention.output.dense", hidden, hidden);
    norm(layer + "attention.output");
    linear(layer + "intermediate.dense", config.intermediate, hidden);
    linear(layer + "output.dense", hidden, config.intermediate);
    norm(layer + "output");
  }
  return weights;
}

int64_t EncoderBytes(const EncoderConfig& config) {
  int64_t bytes = 0;
  for (const WeightSpec& weight : EncoderWeights(config)) {
    int64_t elements = 1;
    for (const int64_t side : weight.shape) elements *= side;
    bytes += elements * static_cast<int64_t>(sizeof(float));
  }
  return bytes;
}

}  // namespace weft
