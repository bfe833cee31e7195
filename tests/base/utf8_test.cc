#include "base/utf8.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Utf8, EveryCodePointComesBack) {
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    std::string text;
    AppendCodePoint(code, text);
    ASSERT_EQ(text.size(), Utf8Size(code));
    const CodePoint back = DecodeCodePoint(text, 0);
    ASSERT_EQ(back.value, code);
    ASSERT_EQ(back.size, text.size());
    ASSERT_EQ(DecodeCodePointBefore(text, text.size()).value, code);
    ASSERT_TRUE(IsUtf8(text));
    ASSERT_EQ(IsAscii(text), code < 0x80);
  }
}

// Unicode 15, tables 3-8 to 3-11: one U+FFFD for each maximal subpart.
TEST(Utf8, IllFormedTextIsReplacedByMaximalSubparts) {
  const auto replaced = [](std::string_view text) {
    std::string out;
    AppendReplaced(text, out);
    EXPECT_FALSE(IsUtf8(text));
    return ToCodePoints(out);
  };
  EXPECT_EQ(replaced("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82"
                     "A"),
            U"\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA");
  EXPECT_EQ(replaced("\xED\xA0\x80\xED\xBF\xBF\xED\xAF"
                     "A"),
            U"\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA");
  EXPECT_EQ(replaced("\xF4\x91\x92\x93\xFF"
                     "A\x80\xBF"
                     "B"),
            U"\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA\uFFFD\uFFFDB");
  EXPECT_EQ(replaced("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF"
                     "A"),
            U"\uFFFD\uFFFD\uFFFD\uFFFDA");
}

TEST(Utf8, TailsThatMayGoOnAreFound) {
  EXPECT_EQ(IncompleteTail("a\xC3"), 1u);
  EXPECT_EQ(IncompleteTail("a\xF0\x9F\x98"), 3u);
  EXPECT_EQ(IncompleteTail("\xC3\xA9"), 0u);
  EXPECT_EQ(IncompleteTail("a\xE0\x80"), 0u);  // no continuation of E0
  EXPECT_EQ(IncompleteTail("\x80\x80"), 0u);
  EXPECT_EQ(IncompleteTail(""), 0u);
}

}  // namespace
}  // namespace weft
