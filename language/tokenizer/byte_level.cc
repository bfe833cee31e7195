#include "language/tokenizer/model.h"
#include "language/unicode.h"

namespace weft {
namespace {

constexpr bool StandsForItself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<uint16_t, 256> code_points{};
  std::array<int16_t, 0x144> bytes{};  // the last code point is U+0143
  constexpr Alphabet() {
    bytes.fill(-1);
    int next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const int code = StandsForItself(byte) ? byte : next++;
      code_points[static_cast<size_t>(byte)] = static_cast<uint16_t>(code);
      bytes[static_cast<size_t>(code)] = static_cast<int16_t>(byte);
    }
  }
};
constexpr Alphabet kAlphabet;

}  // namespace

char32_t ByteLevelCodePoint(uint8_t byte) {
  return kAlphabet.code_points[byte];
}

int ByteOfCodePoint(char32_t code) {
  return code < kAlphabet.bytes.size() ? kAlphabet.bytes[code] : -1;
}

std::string ToByteLevel(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() + bytes.size() / 4);
  for (const char byte : bytes)
    AppendCodePoint(ByteLevelCodePoint(static_cast<uint8_t>(byte)), out);
  return out;
}

}  // namespace weft
