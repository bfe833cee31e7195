// Reads strict JSON (RFC 8259) one value at a time from bytes that are not trusted. The caller asks
// for the type it expects, so nesting is bounded by the caller's code and nothing is built that
// nobody reads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weft {

class JsonCursor {
 public:
  // Messages name the file and offset + position.
  JsonCursor(std::span<const uint8_t> text, std::string_view name, uint64_t offset)
      : text_(text), name_(name), offset_(offset) {}

  // Skips white space; true, and consumes it, when the next byte is `byte`.
  bool Take(char byte);
  void Expect(char byte, const char* what);
  // A string with its escapes resolved, as UTF-8; at most limit bytes. Refuses control characters,
  // lone surrogates and invalid UTF-8.
  std::string String(const char* what, size_t limit);
  // A number written as a non-negative integer (no sign, fraction, exponent or leading zero) up to
  // 2^63 - 1.
  int64_t Unsigned(const char* what);
  // The text of any number RFC 8259 allows, as it stands there.
  std::string_view Number(const char* what);
  // Skips white space; the next byte, which stays, or 0 at the end.
  char Peek();
  // Consumes `word`, which stands next and is no part of a longer word, or returns false.
  bool TakeWord(std::string_view word);
  // True when only spaces, tabs and line ends are left.
  bool AtEnd();

  // Throws Error(kCorrupt): "NAME: byte 123: reason".
  [[noreturn]] void Fail(const std::string& reason) const;

 private:
  void SkipSpace();
  uint32_t HexQuad();
  void AppendEscape(std::string& out);
  void AppendUtf8Sequence(std::string& out);

  std::span<const uint8_t> text_;
  std::string_view name_;
  uint64_t offset_;
  size_t position_ = 0;
};

// Appends UTF-8 text as a JSON string, in quotes, what must be escaped escaped.
void AppendJsonQuoted(std::string_view text, std::string& out);

}  // namespace weft
