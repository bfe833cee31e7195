// From a word (a piece that the pre-tokenizer cut) to tokens: the part of a tokenizer that holds
// the vocabulary. One class per kind of model.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "language/tokenizer/merge_symbols.h"
#include "language/tokenizer/vocabulary.h"

namespace weft {

// The printable code points that byte-level tokenizers write bytes as (GPT-2): 0x21-0x7E, 0xA1-0xAC
// and 0xAE-0xFF are themselves, the other 68 are U+0100 and up in their order.
char32_t ByteLevelCodePoint(uint8_t byte);
// -1 when a code point stands for no byte.
int ByteOfCodePoint(char32_t code);
std::string ToByteLevel(std::string_view bytes);

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Replaces out by the tokens of a word that is not empty; what has no token and no stand-in
  // vanishes.
  virtual void Tokenize(std::string_view word, MergeScratch& scratch,
                        std::vector<Token>& out) const = 0;
  virtual const Vocabulary& vocabulary() const = 0;
  // True when a word may be cut in front of each run of U+2581 behind something else, because no
  // token reaches across: many short words instead of one that is the whole text.
  virtual bool CutsAtMarker() const { return false; }
};

// What a byte-pair model is made of. Ids that are -1 are not given.
struct BpeParts {
  std::string file;  // for messages
  Vocabulary vocabulary;
  std::vector<std::pair<int32_t, int32_t>>
      merges;                  // by falling rank; of equal pairs the last counts
  std::string unknown;         // a token, "" for none
  std::string prefix, suffix;  // of tokens inside a word, and of its last
  bool byte_level = false;     // words are bytes, tokens spell them in code points
  bool fuse_unknown = false, byte_fallback = false, ignore_merges = false;
};
std::unique_ptr<TokenModel> MakeBpe(BpeParts parts);

// SentencePiece's byte-pair model: any two neighbours merge whose text is a token, by falling
// score. scores has one per id of the vocabulary, NaN for ids that text never becomes.
std::unique_ptr<TokenModel> MakeSentencePiece(Vocabulary vocabulary,
                                              const std::vector<float>& scores, int32_t unknown);

// BERT: the longest token that begins the word, then the longest that goes on with it.
std::unique_ptr<TokenModel> MakeWordPiece(Vocabulary vocabulary, int32_t unknown,
                                          std::string prefix, int64_t max_code_points);

}  // namespace weft
