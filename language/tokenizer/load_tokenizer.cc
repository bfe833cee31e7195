// Tokenizers from files: tokenizer.json, a folder with one, and the vocabulary of a GGUF.
#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "base/file.h"
#include "language/json_keys.h"
#include "language/tokenizer/tokenizer_parts.h"

namespace weft {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 28;

// A special token of tokenizer_config.json: its text, or an object with it.
int32_t ReadRole(const Tokenizer& tokenizer, JsonKeys& fields, std::string_view key) {
  const JsonValue* value = fields.Find(key);
  if (!value) return -1;
  const std::string text =
      value->IsObject() ? fields.Object(key).RequiredString("content") : fields.RequiredString(key);
  return tokenizer.Find(text);
}

}  // namespace

Tokenizer Tokenizer::FromJson(std::string_view text, std::string_view file) {
  const JsonValue document = ParseJson(text, file);
  const std::string name(file);
  auto parts = std::make_unique<TokenizerParts>();
  ReadComponents(document, name, *parts);
  parts->model = ReadModel(document, name, parts->byte_level);
  parts->added = ReadAddedTokens(document, name, parts->model->vocabulary());
  return Tokenizer(std::move(parts), name);
}

Tokenizer Tokenizer::Load(const std::string& path) {
  const std::filesystem::path place(path);
  const bool folder = DirectoryExists(path);
  const std::string file = folder ? (place / "tokenizer.json").string() : path;
  Tokenizer tokenizer = FromJson(ReadFile(file, kMaxFileBytes), file);
  if (!folder) return tokenizer;
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const std::string config = (place / name).string();
    if (!FileExists(config)) continue;
    const JsonValue document = ReadJsonFile(config);
    JsonKeys fields(document, config);
    tokenizer.special_ = {.bos = ReadRole(tokenizer, fields, "bos_token"),
                          .eos = ReadRole(tokenizer, fields, "eos_token"),
                          .unknown = ReadRole(tokenizer, fields, "unk_token"),
                          .padding = ReadRole(tokenizer, fields, "pad_token")};
    break;
  }
  return tokenizer;
}

}  // namespace weft
