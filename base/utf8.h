// UTF-8: bytes to code points and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

inline constexpr char32_t kReplacement = 0xFFFD;

// The longest beginning of text[position, ...) that is well-formed (Unicode 15, table 3-7).
struct Utf8Subpart {
  uint32_t size;  // bytes, at least 1 whatever stands there
  bool whole;     // a code point
  bool cut;       // the text ends before the code point does
};
Utf8Subpart ReadUtf8(std::string_view text, size_t position);

// A code point of text and the bytes it takes. Ill-formed bytes give kReplacement for each maximal
// subpart (Unicode 15, section 3.9), so size says how many bytes it stands for.
struct CodePoint {
  char32_t value;
  uint32_t size;
};
CodePoint DecodeCodePoint(std::string_view text, size_t position);
// The one that ends before position, which is > 0 and at a boundary of well-formed text.
CodePoint DecodeCodePointBefore(std::string_view text, size_t position);
void AppendCodePoint(char32_t code, std::string& out);
// Bytes of a code point.
uint32_t Utf8Size(char32_t code);

bool IsAscii(std::string_view text);
bool IsUtf8(std::string_view text);
// Of well-formed text.
size_t CountCodePoints(std::string_view text);
// The bytes at the end of text that may be the beginning of a longer code point.
size_t IncompleteTail(std::string_view text);
// Appends text, each maximal ill-formed subpart replaced by U+FFFD.
void AppendReplaced(std::string_view text, std::string& out);
std::u32string ToCodePoints(std::string_view text);
std::string ToUtf8(std::u32string_view text);

}  // namespace weft
