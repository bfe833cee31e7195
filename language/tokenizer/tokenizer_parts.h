// What a tokenizer is made of, once a file has been read: the steps of its pipeline in order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "language/json.h"
#include "language/tokenizer/added_tokens.h"
#include "language/tokenizer/decoder.h"
#include "language/tokenizer/model.h"
#include "language/tokenizer/normaliser.h"
#include "language/tokenizer/pre_tokenizer.h"
#include "language/tokenizer/tokenizer.h"

namespace weft {

// What is done with the tokens of a whole text.
struct PostProcessor {
  bool trim_offsets = false;      // white space at the ends of a token is not part of its span
  bool keep_first_space = false;  // but one in front of the text is (add_prefix_space)
  std::vector<int32_t> prefix, suffix;  // added by add_special
};

struct TokenizerParts {
  std::unique_ptr<TokenModel> model;
  std::vector<AddedToken> added;
  std::vector<NormaliserStep> normalisers;
  std::vector<PreTokenizerStep> pre_tokenizers;
  bool byte_level = false;  // the pre-tokenizer hands the model bytes
  PostProcessor post;
  std::vector<DecoderStep> decoders;  // empty: the text of tokens, joined
};

// Each reads its members of a tokenizer.json and throws Error(kCorrupt) naming file and member.
// Normaliser, pre-tokenizer, post-processor and decoder:
void ReadComponents(const JsonValue& document, const std::string& file, TokenizerParts& parts);
std::unique_ptr<TokenModel> ReadModel(const JsonValue& document, const std::string& file,
                                      bool byte_level);
std::vector<AddedToken> ReadAddedTokens(const JsonValue& document, const std::string& file,
                                        const Vocabulary& vocabulary);

// What a GGUF says of its tokenizer as a tokenizer.json without its model.
JsonValue GgufComponents(const GgufTokenizer& gguf, const std::string& file);

}  // namespace weft
