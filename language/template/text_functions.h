// Python's methods of str, for methods and filters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::jinja {

enum class StripSide : uint8_t { kBoth, kLeft, kRight };
// White space, or all code points of chars when it is given.
std::string Strip(std::string_view text, const std::string* chars, StripSide side);
// At separator, or at runs of white space when it is null; at most `most` cuts unless < 0.
std::vector<std::string> SplitText(std::string_view text, const std::string* separator,
                                   int64_t most, bool from_right);
std::vector<std::string> SplitLines(std::string_view text, bool keep_ends = false);
std::string Lower(std::string_view text);
std::string Upper(std::string_view text);
std::string Capitalise(std::string_view text);  // str.capitalize
std::string TitleCase(std::string_view text);   // str.title
// At most `most` times unless < 0.
std::string ReplaceAll(std::string_view text, std::string_view from, std::string_view to,
                       int64_t most);
std::string EscapeHtml(std::string_view text);

}  // namespace weft::jinja
