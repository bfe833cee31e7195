#include "language/tokenizer/known_patterns.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/random.h"
#include "language/tokenizer/regex.h"
#include "language/unicode.h"

namespace weft {
namespace {

std::vector<std::string> Words(const std::string& text, const std::vector<Piece>& pieces) {
  std::vector<std::string> words;
  for (const Piece& piece : pieces)
    words.push_back(text.substr(piece.begin, piece.end - piece.begin));
  return words;
}

class KnownPatterns : public ::testing::TestWithParam<KnownPattern> {};

// The engine is another implementation of the same expressions.
TEST_P(KnownPatterns, CutAsTheRegexEngineDoes) {
  const Regex regex{std::string(TextOf(GetParam()))};
  constexpr std::u32string_view kAlphabet =
      U"aZsStTrReEvVmMlLdD''''  \t\n\r\n129.,!-_\u00e9\u017f\u4e2d\u0301\u00a0\u3000\u2028"
      U"\u00bd\u0663\U0001F600\u200d\u0000";
  Rng rng(7, Purpose::kTest);
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    const auto length = 1 + rng.Below(14);
    for (uint64_t i = 0; i < length; ++i) {
      AppendCodePoint(kAlphabet[static_cast<size_t>(rng.Below(kAlphabet.size()))], text);
    }
    const Piece whole = {0, static_cast<uint32_t>(text.size())};
    std::vector<Piece> pieces, expected;
    SplitKnown(GetParam(), text, whole, pieces);
    std::vector<Match> matches;
    regex.Find(text, whole, matches);
    for (const Match& match : matches) expected.push_back(match.piece);
    ASSERT_EQ(Words(text, pieces), Words(text, expected)) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(All, KnownPatterns,
                         ::testing::Values(KnownPattern::kGpt2, KnownPattern::kLlama3,
                                           KnownPattern::kQwen2));

TEST(KnownPatterns, OtherExpressionsAreNotKnown) {
  EXPECT_FALSE(FindKnownPattern("\\w+"));
  EXPECT_EQ(FindKnownPattern(TextOf(KnownPattern::kQwen2)), KnownPattern::kQwen2);
}

TEST(Regex, ReadsWordsAndSpacesAsTheLibraryDoes) {
  const auto found = [](const std::string& pattern, const std::string& text) {
    std::vector<Match> matches;
    Regex(pattern).Find(text, {0, static_cast<uint32_t>(text.size())}, matches);
    std::string out;
    for (const Match& match : matches) {
      const auto [begin, end] = match.piece;
      out +=
          (match.matches ? "[" : "") + text.substr(begin, end - begin) + (match.matches ? "]" : "");
    }
    return out;
  };
  EXPECT_EQ(found("\\w+", "a\u0301\u00bd-b"), "[a\u0301\u00bd]-[b]");
  EXPECT_EQ(found("[\\w-]+", "a-b.c"), "[a-b].[c]");
  EXPECT_EQ(found("\\s", "\u180e\u3000"), "\u180e[\u3000]");
  EXPECT_EQ(found("[^\\s]+|\\W", "a b"), "[a][ ][b]");
  EXPECT_EQ(found("[]a]+", "a]b"), "[a]]b");
  EXPECT_EQ(found("", "ab"), "ab");
  for (const char* pattern : {"[\\W]", "[a[b]]", "[a&&b]", "\\h", "(", "[z-a]", "a{99999}"}) {
    EXPECT_THROW(Regex{pattern}, Error) << pattern;
  }
}

TEST(Regex, GivesUpInsteadOfRunningForEver) {
  const Regex regex("(a+)+$");
  const std::string text = std::string(3000, 'a') + "b";
  std::vector<Match> matches;
  EXPECT_THROW(regex.Find(text, {0, static_cast<uint32_t>(text.size())}, matches), Error);
}

}  // namespace
}  // namespace weft
