// The pre-tokenizers of tokenizer files: they cut a normalised text into the words that the model
// sees. A chain of steps, each cutting the pieces of the one before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "language/tokenizer/aligned_text.h"
#include "language/tokenizer/known_patterns.h"
#include "language/tokenizer/normaliser.h"
#include "language/tokenizer/split.h"

namespace weft {

enum class PrependScheme : uint8_t { kNever, kFirst, kAlways };

struct PreTokenizerStep {
  enum class Kind : uint8_t {
    kKnown,        // known: a pattern written out by hand, each match a piece
    kPattern,      // pattern, behaviour, invert
    kDigits,       // numbers from the rest; individual: each number alone
    kPunctuation,  // behaviour
    kWhitespaceSplit,
    kBert,         // white space dropped, punctuation alone
    kPrefixSpace,  // a space in front of each piece that has none
    kMetaspace,    // spaces become content; prepend; cut: in front of each content
  };
  Kind kind = Kind::kKnown;
  KnownPattern known = KnownPattern::kGpt2;
  Pattern pattern;
  SplitBehaviour behaviour = SplitBehaviour::kIsolated;
  bool invert = false, individual = false, cut = false;
  std::string content;
  PrependScheme prepend = PrependScheme::kNever;
};

// Buffers that one thread reuses from text to text.
struct PreTokenizerScratch {
  std::vector<Piece> next;
  std::vector<Match> matches;
};

// Replaces pieces by the words of text. Steps may change the text itself.
void PreTokenize(const std::vector<PreTokenizerStep>& steps, AlignedText& text,
                 std::vector<Piece>& pieces, PreTokenizerScratch& scratch);

}  // namespace weft
