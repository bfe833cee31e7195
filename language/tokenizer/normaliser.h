// The normalisers of tokenizer files: changes to a text before it is cut into words, which keep
// track of where every byte came from.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "language/tokenizer/aligned_text.h"
#include "language/tokenizer/regex.h"

namespace weft {

// A text or a regular expression to look for.
struct Pattern {
  std::string text;
  std::shared_ptr<const Regex> regex;  // null: text stands for itself

  // Appends the matches in text[piece] and the gaps between them, in order.
  void Find(std::string_view searched, Piece piece, std::vector<Match>& out) const;
};

struct NormaliserStep {
  enum class Kind : uint8_t {
    kNfc,
    kNfd,
    kNfkc,
    kNfkd,
    kLowercase,
    kStrip,         // white space; flags: left, right
    kStripAccents,  // all marks
    kPrepend,       // content, unless the text is empty
    kReplace,       // pattern by content
    kBert,          // flags: clean_text, chinese, strip_accents, lowercase
  };
  Kind kind = Kind::kNfc;
  std::string content;
  Pattern pattern;
  bool left = false, right = false;
  bool clean_text = false, chinese = false, strip_accents = false, lowercase = false;
};

void ApplyNormalisers(const std::vector<NormaliserStep>& steps, AlignedText& text);

// Steps that pre-tokenizers take too.
void ReplaceText(const Pattern& pattern, std::string_view content, AlignedText& text);

}  // namespace weft
