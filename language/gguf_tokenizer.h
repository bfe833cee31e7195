// The tokenizer that a GGUF file carries, as it stands there: what the keys tokenizer.* say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft {

class GgufFile;

enum class GgufTokenType : int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

struct GgufTokenizer {
  std::string model;  // "gpt2": byte-level BPE, "llama": SentencePiece's BPE, "bert": WordPiece
  std::string pre;    // the pre-tokenizer ("smollm", "llama-bpe", "qwen2"); "" when not given
  std::vector<std::string> tokens;  // by id; "gpt2" in the byte-level alphabet
  std::vector<int32_t> types;       // GgufTokenType; empty, or one per token
  std::vector<float> scores;        // "llama": higher merges first; empty, or one per token
  std::vector<std::string> merges;  // "gpt2": "left right" by falling rank
  int64_t bos = -1, eos = -1, eot = -1, unknown = -1, padding = -1, separator = -1;  // -1: none
  std::optional<bool> add_bos, add_eos, add_space_prefix;
  std::string chat_template;                                         // Jinja; "" when there is none
  std::vector<std::pair<std::string, std::string>> named_templates;  // beside it: name, Jinja
};

// Throws Error(kCorrupt) naming the key when types or scores differ from tokens in number or an id
// is no token. The strings are copied from the file.
GgufTokenizer ReadGgufTokenizer(const GgufFile& file);

}  // namespace weft
