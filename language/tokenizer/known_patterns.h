// The regular expressions by which the common byte-level tokenizers cut text into words, written
// out by hand: an order of magnitude faster than a regex engine. tests compare them with PCRE2.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "language/tokenizer/split.h"

namespace weft {

enum class KnownPattern : uint8_t {
  kGpt2,    // GPT-2, SmolLM2, StarCoder
  kLlama3,  // up to three digits together; also GPT-4's cl100k
  kQwen2,   // each digit alone
};

std::string_view TextOf(KnownPattern pattern);
std::optional<KnownPattern> FindKnownPattern(std::string_view regex);

// Appends the pieces of text[piece], which cover it, as if the text ended with the piece.
void SplitKnown(KnownPattern pattern, std::string_view text, Piece piece, std::vector<Piece>& out);

}  // namespace weft
