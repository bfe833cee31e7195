// Learns a byte-level BPE vocabulary from text, token for token as the `tokenizers` library's
// BpeTrainer does: of all pairs of neighbours the most frequent merges, of equals the one of the
// lowest ids.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "language/gguf_tokenizer.h"

namespace weft {

struct BpeTraining {
  int64_t vocabulary = 32'000;        // at most so many tokens, special ones and 256 bytes included
  int64_t min_count = 2;              // pairs seen less often do not merge
  std::string pre = "gpt-2";          // the pre-tokenizer, as GgufTokenizer names it
  std::vector<std::string> specials;  // control tokens, ids from 0
};

// O(bytes of different words * log) after one pass over the texts. Tokenizer::FromGguf makes a
// tokenizer of it, TokenizerJson (tokenizer_files.h) a tokenizer.json. Throws
// Error(kInvalidArgument) when the vocabulary has no room for bytes and special tokens.
GgufTokenizer TrainBpe(std::span<const std::string_view> texts, const BpeTraining& training);

}  // namespace weft
