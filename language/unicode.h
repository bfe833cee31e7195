// Properties of code points, of the Unicode version of the system's utf8proc. What
// tokenizers and templates ask of a character, under the names that their definitions use.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"

namespace weft {

enum class CharacterClass : uint8_t { kLetter, kNumber, kSpace, kOther };
CharacterClass ClassOfWide(char32_t code);  // code >= 128
inline constexpr auto kAsciiClasses = [] {
  std::array<CharacterClass, 128> classes{};
  for (char c = 0; c >= 0 && c < 127; ++c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    classes[static_cast<size_t>(c)] = letter                              ? CharacterClass::kLetter
                                      : c >= '0' && c <= '9'              ? CharacterClass::kNumber
                                      : c == ' ' || (c >= 9 && c <= '\r') ? CharacterClass::kSpace
                                                                          : CharacterClass::kOther;
  }
  classes[127] = CharacterClass::kOther;
  return classes;
}();
// \p{L}, \p{N}, \s (White_Space) and the rest.
inline CharacterClass ClassOf(char32_t code) {
  return code < 128 ? kAsciiClasses[code] : ClassOfWide(code);
}

bool IsLetter(char32_t code);          // \p{L}
bool IsNumber(char32_t code);          // \p{N}
bool IsWhiteSpace(char32_t code);      // White_Space, as Rust's char::is_whitespace
bool IsPythonSpace(char32_t code);     // as Python's str.isspace: also U+001C to U+001F
bool IsPunctuation(char32_t code);     // \p{P}
bool IsMark(char32_t code);            // \p{M}
bool IsNonSpacingMark(char32_t code);  // \p{Mn}
bool IsControl(char32_t code);         // \p{Cc}, \p{Cf}, \p{Cs} or \p{Co}
bool IsWord(char32_t code);            // \w: letters, marks, decimal and letter numbers, connectors
bool IsPrintable(char32_t code);       // as Python's str.isprintable
bool IsDecimal(char32_t code);         // \p{Nd}
bool IsUpper(char32_t code);
bool IsLower(char32_t code);

// Full case mappings without context: one code point may become several.
void AppendLower(char32_t code, std::u32string& out);
void AppendUpper(char32_t code, std::u32string& out);
void AppendTitle(char32_t code, std::u32string& out);

enum class NormalForm : uint8_t { kNfc, kNfd, kNfkc, kNfkd };
// A code point of a normal form, and how many of the source it uses up: 0 for each but the first
// that a decomposition gives, the sum of the parts for a composition.
struct NormalisedCodePoint {
  char32_t value;
  int32_t consumed;
};
std::vector<NormalisedCodePoint> Normalise(std::string_view text, NormalForm form);
// True only if text is surely its own normal form; quick, not exact.
bool IsSurelyNormal(std::string_view text, NormalForm form);

}  // namespace weft
