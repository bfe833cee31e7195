#include "language/tokenizer/added_tokens.h"

#include <algorithm>
#include <cstring>

#include "language/unicode.h"

namespace weft {
namespace {

size_t SpaceBefore(std::string_view text, size_t position) {
  while (position > 0) {
    const CodePoint before = DecodeCodePointBefore(text, position);
    if (!IsWhiteSpace(before.value)) break;
    position -= before.size;
  }
  return position;
}

size_t SpaceBehind(std::string_view text, size_t position) {
  while (position < text.size()) {
    const CodePoint next = DecodeCodePoint(text, position);
    if (!IsWhiteSpace(next.value)) break;
    position += next.size;
  }
  return position;
}

bool IsSingleWord(std::string_view text, size_t begin, size_t end) {
  return (begin == 0 || !IsWord(DecodeCodePointBefore(text, begin).value)) &&
         (end == text.size() || !IsWord(DecodeCodePoint(text, end).value));
}

}  // namespace

void AddedTokenMatcher::Add(std::string_view text, uint32_t index) {
  if (nodes_.empty()) nodes_.emplace_back();
  uint32_t node = 0;
  for (const char byte : text) {
    uint32_t child = nodes_[node].child;
    while (child != 0 && nodes_[child].byte != byte) child = nodes_[child].sibling;
    if (child == 0) {
      child = static_cast<uint32_t>(nodes_.size());
      Node added;
      added.sibling = nodes_[node].child;
      added.byte = byte;
      nodes_.push_back(added);
      nodes_[node].child = child;
    }
    node = child;
  }
  nodes_[node].token = static_cast<int32_t>(index);
  if (!begins_[static_cast<uint8_t>(text[0])]) {
    begins_[static_cast<uint8_t>(text[0])] = true;
    first_bytes_ += text[0];
  }
}

AddedTokenMatcher::Hit AddedTokenMatcher::LongestAt(std::string_view text, size_t position) const {
  Hit best;
  uint32_t node = 0;
  for (size_t i = position; i < text.size(); ++i) {
    uint32_t child = nodes_[node].child;
    while (child != 0 && nodes_[child].byte != text[i]) child = nodes_[child].sibling;
    if (child == 0) break;
    node = child;
    if (nodes_[node].token >= 0) best = {nodes_[node].token, i + 1};
  }
  return best;
}

size_t AddedTokenMatcher::NextCandidate(std::string_view text, size_t position) const {
  if (first_bytes_.size() == 1) {
    const void* found =
        std::memchr(text.data() + position, first_bytes_[0], text.size() - position);
    return found ? static_cast<size_t>(static_cast<const char*>(found) - text.data()) : text.size();
  }
  while (position < text.size() && !begins_[static_cast<uint8_t>(text[position])]) ++position;
  return position;
}

void AddedTokenMatcher::Split(std::string_view text, const std::vector<AddedToken>& tokens,
                              bool skip_special, std::vector<Found>& out) const {
  size_t done = 0;  // all before it is in out
  const auto add = [&](size_t begin, size_t end, int32_t token) {
    out.push_back({{static_cast<uint32_t>(begin), static_cast<uint32_t>(end)}, token});
  };
  for (size_t position = 0; !empty() && position < text.size();) {
    position = NextCandidate(text, position);
    if (position == text.size()) break;
    const Hit hit = LongestAt(text, position);
    if (hit.token < 0) {
      ++position;
      continue;
    }
    size_t begin = position, end = hit.end;
    position = hit.end;
    const AddedToken& token = tokens[static_cast<size_t>(hit.token)];
    if (skip_special && token.special) continue;
    if (token.single_word && !IsSingleWord(text, begin, end)) continue;
    if (token.lstrip) begin = std::max(SpaceBefore(text, begin), done);
    if (token.rstrip) end = SpaceBehind(text, end);
    if (done < begin) add(done, begin, -1);
    add(begin, end, hit.token);
    done = end;
  }
  if (done < text.size()) add(done, text.size(), -1);
}

}  // namespace weft
