#include "language/tokenizer/aligned_text.h"

#include "language/unicode.h"

namespace weft {
namespace {

bool IsContinuation(char byte) {
  return (byte & 0xC0) == 0x80;
}

}  // namespace

void AlignedText::Reset(std::string_view text, int64_t begin) {
  text_ = text;
  begin_ = begin;
  identity_ = true;
}

void AlignedText::Reset(std::string_view text, std::span<const TextSpan> alignment) {
  text_ = text;
  identity_ = false;
  alignment_.assign(alignment.begin(), alignment.end());
}

void AlignedText::ResetSlice(const AlignedText& other, size_t begin, size_t end) {
  const std::string_view slice = other.text_.substr(begin, end - begin);
  if (other.identity_) {
    Reset(slice, other.begin_ + static_cast<int64_t>(begin));
  } else {
    Reset(slice, std::span(other.alignment_).subspan(begin, end - begin));
  }
}

TextSpan AlignedText::SourceOfByte(size_t position) const {
  if (!identity_) return alignment_[position];
  size_t begin = position, end = position + 1;
  while (begin > 0 && IsContinuation(text_[begin])) --begin;
  while (end < text_.size() && IsContinuation(text_[end])) ++end;
  return {begin_ + static_cast<int64_t>(begin), begin_ + static_cast<int64_t>(end)};
}

TextSpan AlignedText::SourceOf(size_t begin, size_t end) const {
  if (begin >= end) {
    const int64_t at = begin < text_.size() ? SourceOfByte(begin).begin : begin_;
    return {at, at};
  }
  return {SourceOfByte(begin).begin, SourceOfByte(end - 1).end};
}

void AlignedText::Begin() {
  next_.clear();
  next_alignment_.clear();
}

void AlignedText::Keep(size_t begin, size_t end) {
  next_.append(text_.substr(begin, end - begin));
  if (!identity_) {
    next_alignment_.insert(next_alignment_.end(),
                           alignment_.begin() + static_cast<std::ptrdiff_t>(begin),
                           alignment_.begin() + static_cast<std::ptrdiff_t>(end));
    return;
  }
  for (size_t i = begin; i < end; ++i) {
    next_alignment_.push_back(i > begin && IsContinuation(text_[i]) ? next_alignment_.back()
                                                                    : SourceOfByte(i));
  }
}

void AlignedText::Put(char32_t code, const TextSpan& source) {
  AppendCodePoint(code, next_);
  next_alignment_.resize(next_.size(), source);
}

void AlignedText::Put(std::string_view bytes, const TextSpan& source) {
  next_.append(bytes);
  next_alignment_.resize(next_.size(), source);
}

void AlignedText::Commit() {
  buffer_.swap(next_);
  alignment_.swap(next_alignment_);
  text_ = buffer_;
  identity_ = false;
}

}  // namespace weft
