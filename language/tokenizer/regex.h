// Regular expressions of tokenizer files through PCRE2: Unicode properties, bounded in time and
// memory whatever the pattern is.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "language/tokenizer/split.h"

namespace weft {

class Regex {
 public:
  // Throws Error(kCorrupt) naming the pattern and the place in it that PCRE2 refuses.
  explicit Regex(const std::string& pattern);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  // Appends the ranges of text[begin, end) in order: each match and each gap between matches, as if
  // the text ended at end. Throws Error(kInvalidArgument) when a match takes too many steps.
  // Thread-safe.
  void Find(std::string_view text, Piece piece, std::vector<Match>& out) const;

 private:
  struct Code;
  std::unique_ptr<Code> code_;
};

}  // namespace weft
