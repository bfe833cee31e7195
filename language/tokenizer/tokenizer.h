// Text to token ids and back, as the model was trained with: a Hugging Face tokenizer.json or the
// vocabulary of a GGUF file, ids, offsets and decoded text equal to those of the `tokenizers`
// library (and SentencePiece for GGUF's "llama"). docs/tokenizers.md says what is supported.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "language/tokenizer/aligned_text.h"

namespace weft {

struct GgufTokenizer;
class JsonValue;
struct TokenizerParts;

struct EncodeOptions {
  // The ids that the post-processor adds around a text (BOS, EOS, [CLS], [SEP]). Not for the text
  // of a chat template, which holds them already.
  bool add_special = false;
  // Whether special tokens that stand in the text are found there. False reads them as plain text:
  // for what a user wrote.
  bool parse_special = true;
};

// Of equal lengths. Spans are those of the text that was given, whole code points even where a
// token is a part of one; an id that was added has [0, 0).
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<TextSpan> bytes;        // bytes of the text
  std::vector<TextSpan> code_points;  // the same places in code points
};

// The roles that files name; -1: none.
struct SpecialIds {
  int32_t bos = -1, eos = -1, eot = -1, unknown = -1, padding = -1;
};

class Tokenizer {
 public:
  // A tokenizer.json, or a folder with one. A folder's tokenizer_config.json (or
  // special_tokens_map.json) says which ids are bos, eos, unknown and padding. Throws Error naming
  // the file and the place in it.
  static Tokenizer Load(const std::string& path);
  static Tokenizer FromJson(std::string_view text, std::string_view file);
  static Tokenizer FromGguf(const GgufTokenizer& vocabulary, std::string_view file);

  Tokenizer(std::unique_ptr<TokenizerParts> parts, const std::string& file);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // Thread-safe, as all below; O(bytes log bytes) at worst. Ill-formed UTF-8 counts as U+FFFD, one
  // for each maximal subpart. Throws Error(kInvalidArgument) for 2 GiB of text and more.
  std::vector<int32_t> Encode(std::string_view text, const EncodeOptions& options = {}) const;
  Encoding EncodeWithOffsets(std::string_view text, const EncodeOptions& options = {}) const;

  // Ids that are no token give nothing. With skip_special, special tokens give nothing either.
  std::string Decode(std::span<const int32_t> ids, bool skip_special = false) const;

  int32_t size() const;                        // one more than the largest id
  std::string_view Text(int32_t id) const;     // as the vocabulary spells it; "" for no token
  int32_t Find(std::string_view token) const;  // by that spelling; -1 when there is none
  bool IsSpecial(int32_t id) const;
  const SpecialIds& special() const { return special_; }
  // What add_special adds before and behind.
  std::span<const int32_t> prefix() const;
  std::span<const int32_t> suffix() const;

 private:
  friend class StreamDecoder;
  struct Engine;
  std::unique_ptr<const Engine> engine_;
  SpecialIds special_;
};

// Decodes ids as they come. What it gives out, put together, is what Decode gives for all of them;
// it holds back what later ids may still change, such as the beginning of a code point.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = false);  // kept
  ~StreamDecoder();
  StreamDecoder(StreamDecoder&&) noexcept;

  std::string Add(int32_t id);
  std::string Finish();  // the rest; then it begins anew

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// [tokens] 1 for each token that shares a code point with one of the spans (in code points, in
// order, apart): the loss mask of a rendered chat.
std::vector<uint8_t> TokensWithin(const Encoding& encoding, std::span<const TextSpan> spans);

}  // namespace weft
