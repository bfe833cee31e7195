#include "base/utf8.h"

#include <algorithm>
#include <cstring>

namespace weft {
namespace {

// What may follow a lead byte: Unicode 15, table 3-7.
struct Lead {
  uint8_t size;  // 0: not a lead byte
  uint8_t second_low, second_high;
};

Lead LeadOf(uint8_t byte) {
  if (byte < 0xC2 || byte > 0xF4) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};  // no surrogates
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {4, 0x80, 0xBF};
}

}  // namespace

Utf8Subpart ReadUtf8(std::string_view text, size_t position) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[position + i]); };
  if (byte(0) < 0x80) return {1, true, false};
  const Lead lead = LeadOf(byte(0));
  if (lead.size == 0) return {1, false, false};
  for (uint32_t i = 1; i < lead.size; ++i) {
    if (position + i == text.size()) return {i, false, true};
    const uint8_t low = i == 1 ? lead.second_low : uint8_t{0x80};
    const uint8_t high = i == 1 ? lead.second_high : uint8_t{0xBF};
    if (byte(i) < low || byte(i) > high) return {i, false, false};
  }
  return {lead.size, true, false};
}

CodePoint DecodeCodePoint(std::string_view text, size_t position) {
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<uint8_t>(text[i])); };
  if (byte(position) < 0x80) return {byte(position), 1};
  const Utf8Subpart part = ReadUtf8(text, position);
  if (!part.whole) return {kReplacement, part.size};
  char32_t code = byte(position) & (0x7Fu >> part.size);
  for (uint32_t i = 1; i < part.size; ++i) code = (code << 6) | (byte(position + i) & 0x3F);
  return {code, part.size};
}

CodePoint DecodeCodePointBefore(std::string_view text, size_t position) {
  size_t begin = position - 1;
  while (begin > 0 && (static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80) --begin;
  return DecodeCodePoint(text, begin);
}

void AppendCodePoint(char32_t code, std::string& out) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

uint32_t Utf8Size(char32_t code) {
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

bool IsAscii(std::string_view text) {
  uint64_t bits = 0, word = 0;
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::memcpy(&word, text.data() + i, 8);
    bits |= word;
  }
  for (; i < text.size(); ++i) bits |= static_cast<uint8_t>(text[i]);
  return (bits & 0x8080808080808080u) == 0;
}

bool IsUtf8(std::string_view text) {
  for (size_t position = 0; position < text.size();) {
    uint64_t word = 0;
    while (position + 8 <= text.size()) {
      std::memcpy(&word, text.data() + position, 8);
      if (word & 0x8080808080808080u) break;
      position += 8;
    }
    if (position == text.size()) break;
    const Utf8Subpart part = ReadUtf8(text, position);
    if (!part.whole) return false;
    position += part.size;
  }
  return true;
}

size_t CountCodePoints(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

size_t IncompleteTail(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const size_t position = text.size() - back;
    if ((static_cast<uint8_t>(text[position]) & 0xC0) == 0x80) continue;
    const Utf8Subpart part = ReadUtf8(text, position);
    return part.cut && part.size == back ? back : 0;
  }
  return 0;
}

void AppendReplaced(std::string_view text, std::string& out) {
  for (size_t position = 0; position < text.size();) {
    const Utf8Subpart part = ReadUtf8(text, position);
    if (part.whole) {
      out.append(text.substr(position, part.size));
    } else {
      out += "\xEF\xBF\xBD";
    }
    position += part.size;
  }
}

std::u32string ToCodePoints(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (size_t position = 0; position < text.size();) {
    const CodePoint next = DecodeCodePoint(text, position);
    out += next.value;
    position += next.size;
  }
  return out;
}

std::string ToUtf8(std::u32string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char32_t code : text) AppendCodePoint(code, out);
  return out;
}

}  // namespace weft
