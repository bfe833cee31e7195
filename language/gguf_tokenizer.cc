#include "language/gguf_tokenizer.h"

#include <string_view>

#include "language/gguf.h"
#include "language/gguf_keys.h"

namespace weft {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kTemplate = "tokenizer.chat_template";

}  // namespace

GgufTokenizer ReadGgufTokenizer(const GgufFile& file) {
  const GgufKeys keys(file);
  GgufTokenizer tokenizer;
  tokenizer.model = keys.String("tokenizer.ggml.model").value_or("");
  tokenizer.pre = keys.String("tokenizer.ggml.pre").value_or("");
  tokenizer.tokens = keys.Strings(kTokens);
  if (tokenizer.model.empty() || tokenizer.tokens.empty()) {
    keys.Fail(tokenizer.model.empty() ? "tokenizer.ggml.model" : kTokens, "is missing");
  }
  const size_t count = tokenizer.tokens.size();

  for (const int64_t type : keys.Integers("tokenizer.ggml.token_type")) {
    if (type < static_cast<int64_t>(GgufTokenType::kNormal) ||
        type > static_cast<int64_t>(GgufTokenType::kByte)) {
      keys.Fail("tokenizer.ggml.token_type", "holds the unknown type " + std::to_string(type));
    }
    tokenizer.types.push_back(static_cast<int32_t>(type));
  }
  tokenizer.scores = keys.Floats("tokenizer.ggml.scores");
  const auto check_count = [&](const char* key, size_t values) {
    if (values != 0 && values != count) {
      keys.Fail(key, "has " + std::to_string(values) + " entries for " + std::to_string(count) +
                         " tokens");
    }
  };
  check_count("tokenizer.ggml.token_type", tokenizer.types.size());
  check_count("tokenizer.ggml.scores", tokenizer.scores.size());
  tokenizer.merges = keys.Strings("tokenizer.ggml.merges");

  const auto id = [&](std::string_view key) {
    return keys.Integer(key, -1, static_cast<int64_t>(count) - 1).value_or(-1);
  };
  tokenizer.bos = id("tokenizer.ggml.bos_token_id");
  tokenizer.eos = id("tokenizer.ggml.eos_token_id");
  tokenizer.eot = id("tokenizer.ggml.eot_token_id");
  tokenizer.unknown = id("tokenizer.ggml.unknown_token_id");
  tokenizer.padding = id("tokenizer.ggml.padding_token_id");
  tokenizer.separator = id("tokenizer.ggml.seperator_token_id");  // as the format spells it
  tokenizer.add_bos = keys.Bool("tokenizer.ggml.add_bos_token");
  tokenizer.add_eos = keys.Bool("tokenizer.ggml.add_eos_token");
  tokenizer.add_space_prefix = keys.Bool("tokenizer.ggml.add_space_prefix");
  tokenizer.chat_template = keys.String(kTemplate).value_or("");
  for (const std::string& name : keys.Strings("tokenizer.chat_templates")) {
    const std::string key = std::string(kTemplate) + "." + name;
    if (auto text = keys.String(key)) tokenizer.named_templates.emplace_back(name, *text);
  }
  return tokenizer;
}

}  // namespace weft
