#include "language/tokenizer/known_patterns.h"

#include "language/unicode.h"

namespace weft {
namespace {

constexpr std::string_view kGpt2Text =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3Text =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
// The same matches, as other files spell them.
constexpr std::string_view kCl100kText =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|)"
    R"(\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Text =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";

using enum CharacterClass;

// Code points of text[position, end).
struct Scanner {
  std::string_view text;
  uint32_t end;

  CharacterClass ClassAt(uint32_t position, uint32_t& size) const {
    const auto byte = static_cast<uint8_t>(text[position]);
    if (byte < 128) {
      size = 1;
      return kAsciiClasses[byte];
    }
    const CodePoint next = DecodeCodePoint(text, position);
    size = next.size;
    return ClassOfWide(next.value);
  }
  bool Is(uint32_t position, char byte) const { return position < end && text[position] == byte; }
  bool IsLineEnd(uint32_t position) const { return Is(position, '\n') || Is(position, '\r'); }
  // Behind the run of code points of a class that begins at position.
  uint32_t SkipRun(uint32_t position, CharacterClass kind) const {
    for (uint32_t size = 0; position < end && ClassAt(position, size) == kind;) position += size;
    return position;
  }

  // \s+(?!\S)|\s+ : a run leaves its last space to the word behind it, unless it has no other.
  uint32_t SpaceRun(uint32_t begin) const {
    uint32_t position = begin, last = begin, size = 0;
    while (position < end && ClassAt(position, size) == kSpace) {
      last = position;
      position += size;
    }
    return position == end || last == begin ? position : last;
  }

  // 's|'t|'re|'ve|'m|'ll|'d at position, or position when none is there.
  uint32_t Contraction(uint32_t position, bool any_case) const {
    if (!Is(position, '\'') || position + 1 >= end) return position;
    const auto letter = [&](uint32_t at) {
      const char c = at < end ? text[at] : '\0';
      return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    };
    const char first = letter(position + 1), second = letter(position + 2);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return position + 2;
    if ((second == 'e' && (first == 'r' || first == 'v')) || (first == 'l' && second == 'l')) {
      return position + 3;
    }
    // U+017F, long s, folds to s.
    if (any_case && text.substr(position + 1, end - position - 1).starts_with("\xC5\xBF")) {
      return position + 3;
    }
    return position;
  }

  uint32_t NextGpt2(uint32_t begin) const {
    if (const uint32_t behind = Contraction(begin, false); behind > begin) return behind;
    uint32_t size = 0;
    uint32_t word = begin;
    CharacterClass kind = ClassAt(begin, size);
    if (text[begin] == ' ' && begin + 1 < end) {
      const CharacterClass next = ClassAt(begin + 1, size);
      if (next != kSpace) {
        kind = next;
        word = begin + 1;
      }
    }
    return kind == kSpace ? SpaceRun(begin) : SkipRun(word + size, kind);
  }

  uint32_t NextLlama3(uint32_t begin, uint32_t max_digits) const {
    if (const uint32_t behind = Contraction(begin, true); behind > begin) return behind;
    uint32_t size = 0, next_size = 0;
    const CharacterClass kind = ClassAt(begin, size);
    if (kind == kLetter) return SkipRun(begin + size, kLetter);
    if (kind == kNumber) {
      uint32_t position = begin + size;
      for (uint32_t digits = 1; digits < max_digits && position < end; ++digits) {
        if (ClassAt(position, size) != kNumber) break;
        position += size;
      }
      return position;
    }
    const uint32_t behind = begin + size;
    const bool has_next = behind < end;
    const CharacterClass next = has_next ? ClassAt(behind, next_size) : kSpace;
    // One character in front of a word, of any kind but a line end.
    if (next == kLetter && !IsLineEnd(begin)) return SkipRun(behind + next_size, kLetter);
    if (kind == kOther || (text[begin] == ' ' && next == kOther)) {
      uint32_t position = SkipRun(kind == kOther ? behind : behind + next_size, kOther);
      while (IsLineEnd(position)) ++position;
      return position;
    }
    // \s*[\r\n]+ : to the last line end of the run, if it has one.
    uint32_t behind_line_end = 0;
    for (uint32_t position = begin; position < end && ClassAt(position, size) == kSpace;) {
      const bool line_end = IsLineEnd(position);
      position += size;
      if (line_end) behind_line_end = position;
    }
    return behind_line_end > 0 ? behind_line_end : SpaceRun(begin);
  }
};

}  // namespace

std::string_view TextOf(KnownPattern pattern) {
  switch (pattern) {
    case KnownPattern::kGpt2:
      return kGpt2Text;
    case KnownPattern::kLlama3:
      return kLlama3Text;
    case KnownPattern::kQwen2:
      return kQwen2Text;
  }
  return {};
}

std::optional<KnownPattern> FindKnownPattern(std::string_view regex) {
  for (const auto pattern : {KnownPattern::kGpt2, KnownPattern::kLlama3, KnownPattern::kQwen2}) {
    if (regex == TextOf(pattern)) return pattern;
  }
  if (regex == kCl100kText) return KnownPattern::kLlama3;
  return {};
}

void SplitKnown(KnownPattern pattern, std::string_view text, Piece piece, std::vector<Piece>& out) {
  const Scanner scanner{text, piece.end};
  for (uint32_t begin = piece.begin; begin < piece.end;) {
    const uint32_t next = pattern == KnownPattern::kGpt2
                              ? scanner.NextGpt2(begin)
                              : scanner.NextLlama3(begin, pattern == KnownPattern::kQwen2 ? 1 : 3);
    out.push_back({begin, next});
    begin = next;
  }
}

}  // namespace weft
