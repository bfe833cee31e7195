#include "language/template/lexer.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "language/unicode.h"

namespace weft::jinja {
namespace {

constexpr std::array<std::string_view, 25> kOperators = {
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ","};

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

// Line ends as \n, the last one dropped.
std::string NormaliseLines(std::string_view source) {
  std::string out;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& file)
      : text_(NormaliseLines(source)), file_(file) {}

  std::vector<Word> Run() {
    while (position_ < text_.size()) {
      const size_t tag = FindTag(position_);
      if (tag == std::string::npos) {
        AddData(text_.substr(position_));
        Advance(text_.size());
        break;
      }
      const char kind = text_[tag + 1];
      AddData(Stripped(std::string_view(text_).substr(position_, tag - position_), tag + 2,
                       kind != '{'));
      Advance(tag);
      at_line_begin_ = false;
      if (kind == '#') {
        SkipComment();
      } else if (kind == '{') {
        Tag(Word::Kind::kVariableBegin, Word::Kind::kVariableEnd);
      } else if (!Raw()) {
        Tag(Word::Kind::kBlockBegin, Word::Kind::kBlockEnd);
      }
    }
    Add(Word::Kind::kEnd, "");
    return std::move(words_);
  }

 private:
  [[noreturn]] void Fail(const std::string& reason) const {
    throw Error(ErrorCode::kCorrupt, file_ + ": line " + std::to_string(line_) + ": " + reason);
  }

  bool At(std::string_view word, size_t position) const {
    return std::string_view(text_).substr(std::min(position, text_.size())).starts_with(word);
  }
  void Advance(size_t to) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(position_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    position_ = to;
  }
  void Add(Word::Kind kind, std::string text) { words_.push_back({kind, std::move(text), line_}); }
  void AddData(std::string data) {
    if (!data.empty()) Add(Word::Kind::kData, std::move(data));
  }

  size_t FindTag(size_t from) const {
    for (size_t at = text_.find('{', from); at != std::string::npos; at = text_.find('{', at + 1)) {
      if (At("{{", at) || At("{%", at) || At("{#", at)) return at;
    }
    return std::string::npos;
  }

  // Behind white space as Python's \s has it.
  size_t SkipSpace(size_t from) const {
    while (from < text_.size()) {
      const CodePoint next = DecodeCodePoint(text_, from);
      if (!IsPythonSpace(next.value)) break;
      from += next.size;
    }
    return from;
  }

  // Data in front of a tag whose sign, if any, stands at `sign`. A block takes the indentation of
  // its line along.
  std::string Stripped(std::string_view data, size_t sign, bool block) const {
    if (At("-", sign)) {
      while (!data.empty()) {
        const CodePoint last = DecodeCodePointBefore(data, data.size());
        if (!IsPythonSpace(last.value)) break;
        data.remove_suffix(last.size);
      }
    } else if (block && !At("+", sign)) {
      const size_t line = data.rfind('\n') + 1;  // 0 when there is none
      const auto blank = [](char32_t code) { return IsPythonSpace(code); };
      if ((line > 0 || at_line_begin_) &&
          std::ranges::all_of(ToCodePoints(data.substr(line)), blank)) {
        data = data.substr(0, line);
      }
    }
    return std::string(data);
  }

  // Behind a closing tag of two characters at `end`: -%} takes all white space along, %} of a block
  // one line end, +%} nothing.
  void Close(size_t end, bool block) {
    const char sign = end > 0 ? text_[end - 1] : '\0';
    size_t behind = end + 2;
    if (sign == '-') {
      behind = SkipSpace(behind);
    } else if (block && sign != '+' && At("\n", behind)) {
      ++behind;
    }
    at_line_begin_ = text_[behind - 1] == '\n';
    Advance(behind);
  }

  void SkipComment() {
    const size_t end = text_.find("#}", position_ + 2);
    if (end == std::string::npos) Fail("the comment is not closed");
    Close(end, true);
  }

  // Behind `{%-  name`, or npos when another word stands there.
  size_t BehindTagName(size_t tag, std::string_view name) const {
    size_t at = tag + 2;
    if (At("-", at) || At("+", at)) ++at;
    at = SkipSpace(at);
    if (!At(name, at)) return std::string::npos;
    return SkipSpace(at + name.size());
  }

  // {% raw %} ... {% endraw %}
  bool Raw() {
    size_t at = BehindTagName(position_, "raw");
    if (at == std::string::npos || !(At("%}", at) || At("-%}", at))) return false;
    if (At("-", at)) ++at;
    Close(at, false);
    for (size_t tag = text_.find("{%", position_); tag != std::string::npos;
         tag = text_.find("{%", tag + 2)) {
      size_t end = BehindTagName(tag, "endraw");
      if (end == std::string::npos) continue;
      if (At("-", end) || At("+", end)) ++end;
      if (!At("%}", end)) continue;
      AddData(Stripped(std::string_view(text_).substr(position_, tag - position_), tag + 2, true));
      Close(end, true);
      return true;
    }
    Fail("the raw block is not closed");
  }

  void Tag(Word::Kind begin, Word::Kind end) {
    Add(begin, "");
    Advance(position_ + 2);
    if (At("-", position_) || At("+", position_)) Advance(position_ + 1);
    const bool block = begin == Word::Kind::kBlockBegin;
    const std::string_view close = block ? "%}" : "}}";
    int open = 0;  // brackets, inside of which nothing closes the tag
    while (true) {
      Advance(SkipSpace(position_));
      if (position_ == text_.size()) Fail("the tag is not closed");
      if (open == 0) {
        const bool sign = At("-", position_) || (block && At("+", position_));
        const size_t at = position_ + (sign ? 1 : 0);
        if (At(close, at)) {
          Add(end, "");
          Close(at, block);
          return;
        }
      }
      const char c = text_[position_];
      if (c == '\'' || c == '"') {
        String(c);
      } else if (IsDigit(c)) {
        Number();
      } else if (!Name()) {
        const auto found = std::ranges::find_if(
            kOperators, [&](std::string_view word) { return At(word, position_); });
        if (found == kOperators.end()) {
          Fail("unexpected character " +
               text_.substr(position_, DecodeCodePoint(text_, position_).size));
        }
        if (*found == "(" || *found == "[" || *found == "{") ++open;
        if (*found == ")" || *found == "]" || *found == "}") --open;
        if (open < 0) Fail("unexpected '" + std::string(*found) + "'");
        Add(Word::Kind::kOperator, std::string(*found));
        Advance(position_ + found->size());
      }
    }
  }

  bool Name() {
    size_t end = position_;
    while (end < text_.size()) {
      const CodePoint next = DecodeCodePoint(text_, end);
      if (!IsWord(next.value)) break;
      end += next.size;
    }
    if (end == position_) return false;
    Add(Word::Kind::kName, text_.substr(position_, end - position_));
    Advance(end);
    return true;
  }

  // Digits with single underscores between them, from `from`; returns the end.
  size_t Digits(size_t from) const {
    size_t end = from;
    while (end < text_.size() &&
           (IsDigit(text_[end]) || (text_[end] == '_' && end > from && end + 1 < text_.size() &&
                                    IsDigit(text_[end + 1])))) {
      ++end;
    }
    return end;
  }

  void Number() {
    size_t end = Digits(position_);
    bool is_float = false;
    // a.0.1 is two items, not a float.
    const bool item =
        !words_.empty() && words_.back().text == "." && words_.back().kind == Word::Kind::kOperator;
    if (!item && At(".", end) && end + 1 < text_.size() && IsDigit(text_[end + 1])) {
      end = Digits(end + 1);
      is_float = true;
    }
    if (!item && (At("e", end) || At("E", end))) {
      const size_t digits = end + 1 + (At("+", end + 1) || At("-", end + 1) ? 1 : 0);
      if (digits < text_.size() && IsDigit(text_[digits])) {
        end = Digits(digits);
        is_float = true;
      }
    }
    std::string number = text_.substr(position_, end - position_);
    std::erase(number, '_');
    if (!is_float && number.size() > 1 && number[0] == '0') Fail("a number begins with 0");
    Add(is_float ? Word::Kind::kFloat : Word::Kind::kInteger, std::move(number));
    Advance(end);
  }

  void String(char quote) {
    std::string value;
    size_t at = position_ + 1;
    while (true) {
      if (at >= text_.size()) Fail("the string is not closed");
      if (text_[at] == quote) break;
      if (text_[at] == '\\') {
        at = Escape(at + 1, value);
      } else {
        value += text_[at++];
      }
    }
    Add(Word::Kind::kString, std::move(value));
    Advance(at + 1);
  }

  // Appends what the escape behind the backslash stands for; returns where it ends.
  size_t Escape(size_t at, std::string& value) const {
    if (at >= text_.size()) Fail("the string is not closed");
    const char kind = text_[at];
    constexpr std::string_view kFrom = "\\'\"abfnrtv", kTo = "\\'\"\a\b\f\n\r\t\v";
    if (const size_t index = kFrom.find(kind); index != std::string_view::npos) {
      value += kTo[index];
      return at + 1;
    }
    if (kind == '\n') return at + 1;
    const size_t hex = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    uint32_t code = 0;
    size_t end = at + (hex > 0 ? 1 : 0), digits = 0;
    const uint32_t base = hex > 0 ? 16 : 8;
    for (; digits < (hex > 0 ? hex : 3) && end < text_.size(); ++digits, ++end) {
      const char c = text_[end];
      const uint32_t digit = IsDigit(c)             ? static_cast<uint32_t>(c - '0')
                             : c >= 'a' && c <= 'f' ? static_cast<uint32_t>(c - 'a' + 10)
                             : c >= 'A' && c <= 'F' ? static_cast<uint32_t>(c - 'A' + 10)
                                                    : 99;
      if (digit >= base) break;
      code = code * base + digit;
    }
    if (hex == 0 && digits == 0) {  // no escape: the backslash stays
      value += '\\';
      return at;
    }
    if (hex > 0 && digits < hex) Fail("an escape lacks hexadecimal digits");
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
      Fail("an escape stands for no character");
    }
    AppendCodePoint(code, value);
    return end;
  }

  const std::string text_;
  const std::string& file_;
  size_t position_ = 0;
  int line_ = 1;
  bool at_line_begin_ = true;  // what stood before ended a line
  std::vector<Word> words_;
};

}  // namespace

std::vector<Word> Lex(std::string_view source, const std::string& file) {
  return Lexer(source, file).Run();
}

}  // namespace weft::jinja
