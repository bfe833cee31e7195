#include "language/template/text_functions.h"

#include <algorithm>

#include "language/unicode.h"

namespace weft::jinja {
namespace {

bool IsCased(char32_t code) {
  std::u32string lower, upper;
  AppendLower(code, lower);
  AppendUpper(code, upper);
  return lower != std::u32string(1, code) || upper != std::u32string(1, code);
}

// U+03A3 is written differently at the end of a word.
bool IsFinalSigma(const std::u32string& text, size_t at) {
  const auto cased_next = [&](auto begin, auto end) {
    for (; begin != end; ++begin) {
      if (IsMark(*begin) || *begin == '\'' || *begin == U'\u2019' || *begin == U'\u00AD') continue;
      return IsCased(*begin);
    }
    return false;
  };
  const auto here = static_cast<std::ptrdiff_t>(at);
  return cased_next(text.rbegin() + (std::ssize(text) - here), text.rend()) &&
         !cased_next(text.begin() + here + 1, text.end());
}

void AppendLowerAt(const std::u32string& text, size_t at, std::u32string& out) {
  if (text[at] == U'\u03A3' && IsFinalSigma(text, at)) {
    out += U'\u03C2';
  } else {
    AppendLower(text[at], out);
  }
}

}  // namespace

std::string Strip(std::string_view text, const std::string* chars, StripSide side) {
  const std::u32string set = chars ? ToCodePoints(*chars) : std::u32string();
  const auto strips = [&](char32_t code) {
    return chars ? set.find(code) != std::u32string::npos : IsPythonSpace(code);
  };
  while (side != StripSide::kRight && !text.empty()) {
    const CodePoint first = DecodeCodePoint(text, 0);
    if (!strips(first.value)) break;
    text.remove_prefix(first.size);
  }
  while (side != StripSide::kLeft && !text.empty()) {
    const CodePoint last = DecodeCodePointBefore(text, text.size());
    if (!strips(last.value)) break;
    text.remove_suffix(last.size);
  }
  return std::string(text);
}

std::vector<std::string> SplitText(std::string_view text, const std::string* separator,
                                   int64_t most, bool from_right) {
  // Every piece of a split without limit, as [begin, end).
  std::vector<std::pair<size_t, size_t>> pieces;
  if (separator) {
    size_t begin = 0;
    std::vector<size_t> cuts;
    if (from_right) {  // overlapping separators are found from the right
      for (size_t end = text.size(); end >= separator->size();) {
        const size_t at = text.substr(0, end).rfind(*separator);
        if (at == std::string_view::npos) break;
        cuts.push_back(at);
        end = at;
      }
      std::ranges::reverse(cuts);
    } else {
      for (size_t at = text.find(*separator); at != std::string_view::npos;
           at = text.find(*separator, at + separator->size())) {
        cuts.push_back(at);
      }
    }
    for (const size_t cut : cuts) {
      pieces.emplace_back(begin, cut);
      begin = cut + separator->size();
    }
    pieces.emplace_back(begin, text.size());
  } else {
    bool inside = false;
    for (size_t position = 0; position < text.size();) {
      const CodePoint next = DecodeCodePoint(text, position);
      const bool space = IsPythonSpace(next.value);
      if (!space && !inside) pieces.emplace_back(position, text.size());
      if (space && inside) pieces.back().second = position;
      inside = !space;
      position += next.size;
    }
  }
  // What lies beyond the limit stays together.
  const auto limit = static_cast<size_t>(std::max<int64_t>(most, 0));
  if (most >= 0 && pieces.size() > limit + 1) {
    const auto keep = static_cast<std::ptrdiff_t>(limit);
    if (from_right) {
      pieces[pieces.size() - limit - 1].first = 0;
      pieces.erase(pieces.begin(), pieces.end() - keep - 1);
    } else {
      pieces[limit].second = text.size();
      pieces.resize(limit + 1);
    }
  }
  std::vector<std::string> out;
  for (const auto& [begin, end] : pieces) out.emplace_back(text.substr(begin, end - begin));
  return out;
}

std::vector<std::string> SplitLines(std::string_view text, bool keep_ends) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t position = 0; position < text.size();) {
    const CodePoint next = DecodeCodePoint(text, position);
    const size_t end = position;
    position += next.size;
    const char32_t code = next.value;
    const bool ends = (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) ||
                      code == 0x85 || code == 0x2028 || code == 0x2029;
    if (!ends) continue;
    if (code == '\r' && position < text.size() && text[position] == '\n') ++position;
    lines.emplace_back(text.substr(begin, (keep_ends ? position : end) - begin));
    begin = position;
  }
  if (begin < text.size()) lines.emplace_back(text.substr(begin));
  return lines;
}

std::string Lower(std::string_view text) {
  const std::u32string codes = ToCodePoints(text);
  std::u32string out;
  for (size_t i = 0; i < codes.size(); ++i) AppendLowerAt(codes, i, out);
  return ToUtf8(out);
}

std::string Upper(std::string_view text) {
  std::u32string out;
  for (const char32_t code : ToCodePoints(text)) AppendUpper(code, out);
  return ToUtf8(out);
}

std::string Capitalise(std::string_view text) {
  const std::u32string codes = ToCodePoints(text);
  std::u32string out;
  for (size_t i = 0; i < codes.size(); ++i) {
    if (i == 0) {
      AppendTitle(codes[0], out);
    } else {
      AppendLowerAt(codes, i, out);
    }
  }
  return ToUtf8(out);
}

std::string TitleCase(std::string_view text) {
  const std::u32string codes = ToCodePoints(text);
  std::u32string out;
  bool inside = false;
  for (size_t i = 0; i < codes.size(); ++i) {
    if (inside) {
      AppendLowerAt(codes, i, out);
    } else {
      AppendTitle(codes[i], out);
    }
    inside = IsCased(codes[i]);
  }
  return ToUtf8(out);
}

std::string ReplaceAll(std::string_view text, std::string_view from, std::string_view to,
                       int64_t most) {
  std::string out;
  size_t done = 0;
  const auto goes_on = [&] { return most < 0 || most-- > 0; };
  if (from.empty()) {  // between all code points
    while (goes_on()) {
      out += to;
      if (done == text.size()) return out;
      const uint32_t size = DecodeCodePoint(text, done).size;
      out += text.substr(done, size);
      done += size;
    }
    return out += text.substr(done);
  }
  for (size_t at = text.find(from); at != std::string_view::npos && goes_on();
       at = text.find(from, done)) {
    out += text.substr(done, at - done);
    out += to;
    done = at + from.size();
  }
  return out += text.substr(done);
}

std::string EscapeHtml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace weft::jinja
