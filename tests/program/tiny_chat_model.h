// A chat model of a few thousand random weights as a Hugging Face folder: a token for each byte,
// and two around messages. It speaks gibberish, the same every time, and never ends by itself.
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "language/hf_config.h"
#include "language/json.h"
#include "language/model_writer.h"

namespace weft {

// The alphabet of byte-level BPE: a printable character for each byte.
inline std::string ByteCharacter(int byte, int& next) {
  const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  const int code = printable ? byte : 256 + next++;
  if (code < 128) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 63))};
}

inline std::string TinyTokenizerJson() {
  JsonValue vocabulary = JsonValue::MakeObject(), added = JsonValue::MakeArray();
  int next = 0;
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary.Set(ByteCharacter(byte, next), JsonValue(byte));
  }
  int id = 256;
  for (const char* token : {"<|im_start|>", "<|im_end|>"}) {
    vocabulary.Set(token, JsonValue(id));
    added.Append(JsonValue::MakeObject({{"id", JsonValue(id++)},
                                        {"content", JsonValue(token)},
                                        {"single_word", JsonValue(false)},
                                        {"lstrip", JsonValue(false)},
                                        {"rstrip", JsonValue(false)},
                                        {"normalized", JsonValue(false)},
                                        {"special", JsonValue(true)}}));
  }
  JsonValue json = ParseJson(
      R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,)"
      R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,)"
      R"("use_regex":false},"post_processor":null,"decoder":{"type":"ByteLevel",)"
      R"("add_prefix_space":false,"trim_offsets":true,"use_regex":false},"model":{"type":"BPE",)"
      R"("dropout":null,"unk_token":null,"continuing_subword_prefix":null,)"
      R"("end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,"merges":[]}})",
      "tokenizer.json");
  json.Set("added_tokens", std::move(added));
  JsonValue model = *json.Find("model");
  model.Set("vocab", std::move(vocabulary));
  json.Set("model", std::move(model));
  return json.ToText();
}

inline void WriteTinyChatModel(const std::string& folder, int64_t context) {
  JsonValue config =
      ParseJson(R"({"model_type":"llama","vocab_size":258,"hidden_size":32,"num_hidden_layers":2,)"
                R"("num_attention_heads":4,"num_key_value_heads":2,"intermediate_size":64,)"
                R"("tie_word_embeddings":true})",
                "config.json");
  config.Set("max_position_embeddings", JsonValue(context));
  const ModelDescription description = ReadHfConfig(config, "config.json");
  std::vector<std::vector<float>> values;
  std::vector<StoredWeight> weights;
  uint64_t stream = 0;
  for (const WeightSpec& spec : ModelWeights(description.config)) {
    int64_t count = 1;
    for (const int64_t size : spec.shape) count *= size;
    const bool norm = spec.name.find("norm") != std::string::npos;
    Rng rng(Rng::State{5, stream++, 0});
    std::vector<float>& data = values.emplace_back(static_cast<size_t>(count));
    for (float& value : data)
      value = static_cast<float>(norm) + 0.3f * static_cast<float>(rng.Normal());
    weights.emplace_back(spec, data.data());
  }
  const std::string tokenizer_config =
      R"({"tokenizer_class":"PreTrainedTokenizerFast","chat_template":)"
      R"("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n)"
      R"({% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"})";
  WriteModelFolder(
      folder, description, weights, WeightType::kF32,
      {{"tokenizer.json", TinyTokenizerJson()}, {"tokenizer_config.json", tokenizer_config}});
}

}  // namespace weft
