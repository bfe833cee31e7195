// A text on its way through a tokenizer, and where each of its bytes came from. As long as nothing
// is changed that is one flag; after the first change each byte has the span of the source that it
// stands for, by the rules of the `tokenizers` library: what replaces a code point has that code
// point's span, what is inserted has that of the one before.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// Half open. Of bytes or code points, as said where it stands.
struct TextSpan {
  int64_t begin = 0, end = 0;
  friend bool operator==(const TextSpan&, const TextSpan&) = default;
};

class AlignedText {
 public:
  // A view of well-formed source bytes [begin, begin + text.size()).
  void Reset(std::string_view text, int64_t begin);
  // As Reset where the bytes of text do not stand for those of the same place: one span per byte.
  void Reset(std::string_view text, std::span<const TextSpan> alignment);

  // Bytes [begin, end) of another text, which stays as it is while this one is read.
  void ResetSlice(const AlignedText& other, size_t begin, size_t end);

  std::string_view text() const { return text_; }
  // Where a token of bytes [begin, end) stands in the source, grown to whole code points.
  TextSpan SourceOf(size_t begin, size_t end) const;
  TextSpan SourceOfByte(size_t position) const;

  // Edits write the new text from front to back: Begin, any of the others, Commit.
  void Begin();
  void Keep(size_t begin, size_t end);              // old bytes as they are
  void Put(char32_t code, const TextSpan& source);  // a code point with a span
  void Put(std::string_view bytes, const TextSpan& source);
  void Commit();

 private:
  std::string_view text_;
  int64_t begin_ = 0;
  bool identity_ = true;
  std::string buffer_, next_;
  std::vector<TextSpan> alignment_, next_alignment_;  // per byte of text_, unless identity_
};

}  // namespace weft
