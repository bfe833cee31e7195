#include "nn/json_cursor.h"

#include "base/check.h"
#include "base/utf8.h"

namespace weft {
namespace {

bool IsWordByte(uint8_t byte) {
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
         (byte >= 'A' && byte <= 'Z') || byte == '_' || byte == '.';
}

}  // namespace

void JsonCursor::Fail(const std::string& reason) const {
  throw Error(ErrorCode::kCorrupt,
              std::string(name_) + ": byte " + std::to_string(offset_ + position_) + ": " + reason);
}

void JsonCursor::SkipSpace() {
  while (position_ < text_.size()) {
    const uint8_t byte = text_[position_];
    if (byte != ' ' && byte != '\t' && byte != '\n' && byte != '\r') return;
    ++position_;
  }
}

bool JsonCursor::AtEnd() {
  SkipSpace();
  return position_ == text_.size();
}

bool JsonCursor::Take(char byte) {
  SkipSpace();
  if (position_ == text_.size() || text_[position_] != static_cast<uint8_t>(byte)) return false;
  ++position_;
  return true;
}

void JsonCursor::Expect(char byte, const char* what) {
  if (!Take(byte)) Fail(std::string("expected '") + byte + "' " + what);
}

int64_t JsonCursor::Unsigned(const char* what) {
  SkipSpace();
  const size_t begin = position_;
  int64_t value = 0;
  while (position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9') {
    if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
        __builtin_add_overflow(value, int64_t{text_[position_]} - '0', &value)) {
      Fail(std::string(what) + " is too large");
    }
    ++position_;
  }
  const size_t digits = position_ - begin;
  const uint8_t next = position_ < text_.size() ? text_[position_] : uint8_t{' '};
  if (digits == 0 || next == '.' || next == 'e' || next == 'E' ||
      (digits > 1 && text_[begin] == '0')) {
    Fail(std::string(what) + " must be a non-negative integer");
  }
  return value;
}

char JsonCursor::Peek() {
  SkipSpace();
  return position_ < text_.size() ? static_cast<char>(text_[position_]) : '\0';
}

bool JsonCursor::TakeWord(std::string_view word) {
  SkipSpace();
  const size_t end = position_ + word.size();
  if (end > text_.size()) return false;
  for (size_t i = 0; i < word.size(); ++i) {
    if (text_[position_ + i] != static_cast<uint8_t>(word[i])) return false;
  }
  if (end < text_.size() && IsWordByte(text_[end])) return false;
  position_ = end;
  return true;
}

std::string_view JsonCursor::Number(const char* what) {
  SkipSpace();
  const size_t begin = position_;
  const auto next = [&] { return position_ < text_.size() ? text_[position_] : uint8_t{0}; };
  const auto skip_digits = [&] {
    const size_t first = position_;
    while (next() >= '0' && next() <= '9') ++position_;
    return position_ - first;
  };
  if (next() == '-') ++position_;
  const bool zero = next() == '0';
  const size_t whole = skip_digits();
  bool good = whole > 0 && !(zero && whole > 1);
  if (good && next() == '.') {
    ++position_;
    good = skip_digits() > 0;
  }
  if (good && (next() == 'e' || next() == 'E')) {
    ++position_;
    if (next() == '+' || next() == '-') ++position_;
    good = skip_digits() > 0;
  }
  if (!good || IsWordByte(next())) Fail(std::string(what) + " must be a number");
  return {reinterpret_cast<const char*>(text_.data()) + begin, position_ - begin};
}

std::string JsonCursor::String(const char* what, size_t limit) {
  SkipSpace();
  if (position_ == text_.size() || text_[position_] != '"') {
    Fail(std::string(what) + " must be a string");
  }
  ++position_;
  std::string out;
  while (true) {
    if (position_ == text_.size()) Fail(std::string(what) + " is not closed");
    if (out.size() > limit) {
      Fail(std::string(what) + " is longer than " + std::to_string(limit) + " bytes");
    }
    const uint8_t byte = text_[position_];
    if (byte == '"') {
      ++position_;
      return out;
    }
    if (byte < 0x20) Fail(std::string(what) + " holds a control character");
    if (byte == '\\') {
      AppendEscape(out);
    } else if (byte < 0x80) {
      out += static_cast<char>(byte);
      ++position_;
    } else {
      AppendUtf8Sequence(out);
    }
  }
}

void JsonCursor::AppendUtf8Sequence(std::string& out) {
  const std::string_view text(reinterpret_cast<const char*>(text_.data()), text_.size());
  const Utf8Subpart part = ReadUtf8(text, position_);
  if (!part.whole) Fail("invalid UTF-8");
  out.append(text.substr(position_, part.size));
  position_ += part.size;
}

uint32_t JsonCursor::HexQuad() {
  uint32_t code = 0;
  for (int i = 0; i < 4; ++i, ++position_) {
    const uint8_t byte = position_ < text_.size() ? text_[position_] : uint8_t{0};
    uint32_t digit = 0;
    if (byte >= '0' && byte <= '9') {
      digit = byte - uint32_t{'0'};
    } else if (byte >= 'a' && byte <= 'f') {
      digit = byte - uint32_t{'a'} + 10;
    } else if (byte >= 'A' && byte <= 'F') {
      digit = byte - uint32_t{'A'} + 10;
    } else {
      Fail("\\u needs four hexadecimal digits");
    }
    code = code * 16 + digit;
  }
  return code;
}

void JsonCursor::AppendEscape(std::string& out) {
  ++position_;  // the backslash
  const uint8_t kind = position_ < text_.size() ? text_[position_] : uint8_t{0};
  constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
  if (const size_t index = kFrom.find(static_cast<char>(kind)); index != std::string_view::npos) {
    out += kTo[index];
    ++position_;
    return;
  }
  if (kind != 'u') Fail("unknown escape");
  ++position_;
  uint32_t code = HexQuad();
  if (code >= 0xD800 && code <= 0xDBFF) {
    if (position_ + 1 >= text_.size() || text_[position_] != '\\' || text_[position_ + 1] != 'u') {
      Fail("lone surrogate");
    }
    position_ += 2;
    const uint32_t low = HexQuad();
    if (low < 0xDC00 || low > 0xDFFF) Fail("lone surrogate");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  } else if (code >= 0xDC00 && code <= 0xDFFF) {
    Fail("lone surrogate");
  }
  AppendCodePoint(code, out);
}

void AppendJsonQuoted(std::string_view text, std::string& out) {
  constexpr char kDigits[] = "0123456789abcdef";
  constexpr std::string_view kFrom = "\b\f\n\r\t", kTo = "bfnrt";
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (const size_t index = kFrom.find(c); index != std::string_view::npos) {
      out += '\\';
      out += kTo[index];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      out += kDigits[(c >> 4) & 15];
      out += kDigits[c & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace weft
