#include "language/tokenizer_files.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/check.h"
#include "base/file.h"
#include "language/gguf_keys.h"
#include "language/json.h"
#include "language/json_keys.h"
#include "language/tokenizer/tokenizer_parts.h"

namespace weft {
namespace {

constexpr std::string_view kHuggingFaceKey = "tokenizer.huggingface.json";
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 28;
constexpr const char* kFiles[] = {"tokenizer.json",
                                  "tokenizer_config.json",
                                  "special_tokens_map.json",
                                  "added_tokens.json",
                                  "vocab.json",
                                  "merges.txt",
                                  "tokenizer.model",
                                  "chat_template.jinja",
                                  "chat_template.json"};

// Code points of UTF-8 text, as indices of their first bytes and the end.
std::vector<size_t> CodePoints(std::string_view text) {
  std::vector<size_t> begins;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) begins.push_back(i);
  }
  begins.push_back(text.size());
  return begins;
}

using Ids = std::map<std::string_view, int64_t, std::less<>>;

// The merges that SentencePiece's scores stand for: every split of a token into two tokens, the
// best score first (transformers, convert_slow_tokenizer.py).
JsonValue MergesOfScores(const GgufTokenizer& tokenizer, const Ids& ids) {
  struct Merge {
    float score;
    size_t left_length, right_length;  // in code points
    int64_t left, right;
  };
  std::vector<Merge> merges;
  for (size_t id = 0; id < tokenizer.tokens.size(); ++id) {
    const auto type = static_cast<GgufTokenType>(tokenizer.types[id]);
    if (type != GgufTokenType::kNormal && type != GgufTokenType::kUserDefined) continue;
    const std::string_view token = tokenizer.tokens[id];
    const std::vector<size_t> begins = CodePoints(token);
    for (size_t i = 1; i + 1 < begins.size(); ++i) {
      const auto left = ids.find(token.substr(0, begins[i]));
      const auto right = ids.find(token.substr(begins[i]));
      if (left == ids.end() || right == ids.end()) continue;
      merges.push_back(
          {tokenizer.scores[id], i, begins.size() - 1 - i, left->second, right->second});
    }
  }
  std::ranges::stable_sort(merges, [](const Merge& a, const Merge& b) {
    return std::tuple(a.score, a.left_length, a.right_length) >
           std::tuple(b.score, b.left_length, b.right_length);
  });
  JsonValue list = JsonValue::MakeArray();
  for (const Merge& merge : merges) {
    list.Append(
        JsonValue::MakeArray({JsonValue(tokenizer.tokens[static_cast<size_t>(merge.left)]),
                              JsonValue(tokenizer.tokens[static_cast<size_t>(merge.right)])}));
  }
  return list;
}

// "model" of tokenizer.json.
JsonValue MakeModel(const GgufTokenizer& tokenizer) {
  const bool byte_level = tokenizer.model == "gpt2";
  JsonValue model = JsonValue::MakeObject();
  model.Set("type", JsonValue("BPE"));
  model.Set("dropout", {});
  const bool unknown = !byte_level && tokenizer.unknown >= 0;
  model.Set("unk_token", unknown
                             ? JsonValue(tokenizer.tokens[static_cast<size_t>(tokenizer.unknown)])
                             : JsonValue());
  model.Set("continuing_subword_prefix", {});
  model.Set("end_of_word_suffix", {});
  model.Set("fuse_unk", JsonValue(!byte_level));
  model.Set("byte_fallback", JsonValue(!byte_level));
  const bool whole_words = byte_level && (tokenizer.pre == "llama-bpe" ||
                                          tokenizer.pre == "llama3" || tokenizer.pre == "llama-v3");
  model.Set("ignore_merges", JsonValue(whole_words));
  Ids ids;
  std::vector<JsonValue::Member> vocabulary;
  for (size_t id = 0; id < tokenizer.tokens.size(); ++id) {
    if (ids.emplace(tokenizer.tokens[id], static_cast<int64_t>(id)).second) {
      vocabulary.emplace_back(tokenizer.tokens[id], JsonValue(static_cast<int64_t>(id)));
    }
  }
  model.Set("vocab", JsonValue::MakeObject(std::move(vocabulary)));
  if (byte_level) {
    JsonValue merges = JsonValue::MakeArray();
    for (const std::string& merge : tokenizer.merges) {
      const size_t space = merge.find(' ', 1);
      merges.Append(JsonValue::MakeArray(
          {JsonValue(merge.substr(0, space)), JsonValue(merge.substr(space + 1))}));
    }
    model.Set("merges", std::move(merges));
  } else {
    model.Set("merges", MergesOfScores(tokenizer, ids));
  }
  return model;
}

JsonValue MakeTokenizerConfig(const GgufTokenizer& tokenizer, int64_t context) {
  JsonValue config = JsonValue::MakeObject();
  if (tokenizer.add_bos) config.Set("add_bos_token", JsonValue(*tokenizer.add_bos));
  if (tokenizer.add_eos) config.Set("add_eos_token", JsonValue(*tokenizer.add_eos));
  const auto role = [&](const char* key, int64_t id) {
    if (id >= 0) config.Set(key, JsonValue(tokenizer.tokens[static_cast<size_t>(id)]));
  };
  role("bos_token", tokenizer.bos);
  role("eos_token", tokenizer.eos);
  role("unk_token", tokenizer.unknown);
  role("pad_token", tokenizer.padding);
  if (!tokenizer.named_templates.empty()) {
    JsonValue list = JsonValue::MakeArray();
    const auto add = [&](const std::string& name, const std::string& text) {
      JsonValue entry = JsonValue::MakeObject();
      entry.Set("name", JsonValue(name));
      entry.Set("template", JsonValue(text));
      list.Append(std::move(entry));
    };
    if (!tokenizer.chat_template.empty()) add("default", tokenizer.chat_template);
    for (const auto& [name, text] : tokenizer.named_templates) add(name, text);
    config.Set("chat_template", std::move(list));
  } else if (!tokenizer.chat_template.empty()) {
    config.Set("chat_template", JsonValue(tokenizer.chat_template));
  }
  config.Set("clean_up_tokenization_spaces", JsonValue(false));
  config.Set("model_max_length", JsonValue(context));
  config.Set("tokenizer_class", JsonValue("PreTrainedTokenizerFast"));
  return config;
}

}  // namespace

void SetGgufTokenizer(const GgufTokenizer& tokenizer, GgufWriter& writer) {
  writer.SetString("tokenizer.ggml.model", tokenizer.model);
  if (!tokenizer.pre.empty()) writer.SetString("tokenizer.ggml.pre", tokenizer.pre);
  writer.SetStrings("tokenizer.ggml.tokens", tokenizer.tokens);
  if (!tokenizer.scores.empty()) writer.SetF32s("tokenizer.ggml.scores", tokenizer.scores);
  if (!tokenizer.types.empty()) writer.SetI32s("tokenizer.ggml.token_type", tokenizer.types);
  if (!tokenizer.merges.empty()) writer.SetStrings("tokenizer.ggml.merges", tokenizer.merges);
  const auto id = [&](const char* key, int64_t value) {
    if (value >= 0) writer.SetU32(key, value);
  };
  id("tokenizer.ggml.bos_token_id", tokenizer.bos);
  id("tokenizer.ggml.eos_token_id", tokenizer.eos);
  id("tokenizer.ggml.eot_token_id", tokenizer.eot);
  id("tokenizer.ggml.unknown_token_id", tokenizer.unknown);
  id("tokenizer.ggml.padding_token_id", tokenizer.padding);
  id("tokenizer.ggml.seperator_token_id", tokenizer.separator);
  const auto flag = [&](const char* key, const std::optional<bool>& value) {
    if (value) writer.SetBool(key, *value);
  };
  flag("tokenizer.ggml.add_bos_token", tokenizer.add_bos);
  flag("tokenizer.ggml.add_eos_token", tokenizer.add_eos);
  flag("tokenizer.ggml.add_space_prefix", tokenizer.add_space_prefix);
  if (!tokenizer.chat_template.empty()) {
    writer.SetString("tokenizer.chat_template", tokenizer.chat_template);
  }
  std::vector<std::string> names;
  for (const auto& [name, text] : tokenizer.named_templates) {
    names.push_back(name);
    writer.SetString("tokenizer.chat_template." + name, text);
  }
  if (!names.empty()) writer.SetStrings("tokenizer.chat_templates", names);
}

std::string TokenizerJson(GgufTokenizer tokenizer, const std::string& file) {
  JsonValue document = GgufComponents(tokenizer, file);
  if (tokenizer.types.empty()) {
    tokenizer.types.assign(tokenizer.tokens.size(), static_cast<int32_t>(GgufTokenType::kNormal));
  }
  if (tokenizer.scores.empty()) tokenizer.scores.assign(tokenizer.tokens.size(), 0.0f);
  document.Set("model", MakeModel(tokenizer));
  return document.ToText(2) + "\n";
}

TextFiles MakeTokenizerFiles(const GgufFile& file, int64_t context) {
  const GgufTokenizer tokenizer = ReadGgufTokenizer(file);
  TextFiles files;
  if (const auto text = GgufKeys(file).String(kHuggingFaceKey)) {
    files.emplace_back("tokenizer.json", *text);
  } else {
    files.emplace_back("tokenizer.json", TokenizerJson(tokenizer, file.name()));
  }
  files.emplace_back("tokenizer_config.json",
                     MakeTokenizerConfig(tokenizer, context).ToText(2) + "\n");
  return files;
}

TextFiles CopyTokenizerFiles(const std::string& folder) {
  TextFiles files;
  for (const char* name : kFiles) {
    const std::string path = folder + "/" + name;
    if (FileExists(path)) files.emplace_back(name, ReadFile(path, kMaxFileBytes));
  }
  return files;
}

bool HasTokenizer(const GgufFile& file) {
  return file.Find("tokenizer.ggml.tokens") != nullptr;
}

bool HasTokenizer(const std::string& folder) {
  if (FileExists(folder + "/tokenizer.json")) return true;
  for (const char* name : {"tokenizer.model", "vocab.json"}) {
    if (!FileExists(folder + "/" + name)) continue;
    throw Error(
        ErrorCode::kInvalidArgument,
        folder + ": there is a " + name + " but no tokenizer.json, the form that weft reads");
  }
  return false;
}

}  // namespace weft
