#include "language/tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "base/file.h"
#include "tests/language/reference_files.h"
#include "tests/language/tokenizer_files.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tokenizer Small() {
  return Tokenizer::FromJson(SmallTokenizerJson(), "small.json");
}

std::string Fault(const std::string& json) {
  try {
    Tokenizer::FromJson(json, "small.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

TEST(Tokenizer, MergesTheLowestRankFirstAndTheLeftmostOfEquals) {
  const Tokenizer tokenizer = Small();
  EXPECT_THAT(tokenizer.Encode("abc bc"), ElementsAre(5, 3, 10));
  EXPECT_THAT(tokenizer.Encode(" abc"), ElementsAre(6, 10));
  EXPECT_THAT(tokenizer.Encode("aaa"), ElementsAre(11, 0));
  EXPECT_THAT(tokenizer.Encode(std::string(40, 'a') + "b"),  // the heap, not the scan
              ElementsAre(12, 12, 12, 12, 12, 12, 12, 12, 12, 11, 0, 4));
  EXPECT_THAT(tokenizer.Encode(""), ElementsAre());
  EXPECT_EQ(tokenizer.size(), 13);
  EXPECT_EQ(tokenizer.Text(6),
            "\xC4\xA0"
            "a");
  EXPECT_EQ(tokenizer.Find("<|end|>"), 9);
  EXPECT_EQ(tokenizer.Find("nothing"), -1);
}

TEST(Tokenizer, LastOfTwoEqualMergesCounts) {
  // Without the second (a, b) the pieces of abc are ab, c.
  const std::string once =
      R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4, "abc": 5},
          "merges": [["a", "b"], ["b", "c"]]}})";
  std::string twice = once;
  twice.replace(twice.find("]]}}"), 4, R"(], ["a", "b"]]}})");
  EXPECT_THAT(Tokenizer::FromJson(once, "t").Encode("abc"), ElementsAre(3, 2));
  EXPECT_THAT(Tokenizer::FromJson(twice, "t").Encode("abc"), ElementsAre(0, 4));
}

TEST(Tokenizer, AWordOfAMegabyteTakesNoQuadraticTime) {
  const auto ids = Small().Encode(std::string(1'000'000, 'a'));
  EXPECT_EQ(ids, std::vector<int32_t>(250'000, 12));
}

TEST(Tokenizer, FindsControlTokensUnlessTheTextIsAUsers) {
  const Tokenizer tokenizer = Small();
  EXPECT_THAT(tokenizer.Encode("a<|end|>b"), ElementsAre(0, 9, 1));
  EXPECT_THAT(tokenizer.Encode("a<|end|>b", {.parse_special = false}), ElementsAre(0, 1));
  const std::vector<int32_t> ids = {0, 9, 1, 99, -1};
  EXPECT_EQ(tokenizer.Decode(ids), "a<|end|>b");
  EXPECT_EQ(tokenizer.Decode(ids, true), "ab");
  EXPECT_TRUE(tokenizer.IsSpecial(9));
  EXPECT_FALSE(tokenizer.IsSpecial(0));
}

TEST(Tokenizer, SpansAreThoseOfTheTextGiven) {
  const std::string text = "\xC3\xA9\xFF ab";  // an accented letter, a stray byte, " ab"
  const Encoding encoding = Small().EncodeWithOffsets(text);
  // The two bytes of the letter are tokens of the same code point; U+FFFD has no tokens here.
  EXPECT_THAT(encoding.ids, ElementsAre(7, 8, 6, 1));
  EXPECT_THAT(encoding.bytes,
              ElementsAre(TextSpan{0, 2}, TextSpan{0, 2}, TextSpan{3, 5}, TextSpan{5, 6}));
  EXPECT_THAT(encoding.code_points,
              ElementsAre(TextSpan{0, 1}, TextSpan{0, 1}, TextSpan{2, 4}, TextSpan{4, 5}));
}

TEST(Tokenizer, MasksTokensThatShareACodePointWithASpan) {
  const Encoding encoding = Small().EncodeWithOffsets("abc abc");
  EXPECT_THAT(encoding.code_points, ElementsAre(TextSpan{0, 3}, TextSpan{3, 5}, TextSpan{5, 7}));
  const std::vector<TextSpan> spans = {{0, 0}, {1, 2}, {5, 7}};
  EXPECT_THAT(TokensWithin(encoding, spans), ElementsAre(1, 0, 1));
  EXPECT_THAT(TokensWithin(encoding, std::vector<TextSpan>{{4, 6}}), ElementsAre(0, 1, 1));
  EXPECT_THAT(TokensWithin(encoding, {}), ElementsAre(0, 0, 0));
}

TEST(Tokenizer, StreamsHoldHalfACodePointBack) {
  const Tokenizer tokenizer = Small();
  StreamDecoder stream(tokenizer);
  EXPECT_EQ(stream.Add(0), "a");
  EXPECT_EQ(stream.Add(7), "");
  EXPECT_EQ(stream.Add(8), "\xC3\xA9");
  EXPECT_EQ(stream.Add(7), "");
  EXPECT_EQ(stream.Add(0),
            "\xEF\xBF\xBD"
            "a");
  EXPECT_EQ(stream.Add(7), "");
  EXPECT_EQ(stream.Finish(), "\xEF\xBF\xBD");
}

TEST(Tokenizer, NamesFileAndPlaceOfEveryFault) {
  const auto with = SmallTokenizerWith;
  EXPECT_THAT(Fault(with("\"a\": 0", "\"a\": -1")), HasSubstr("small.json: model.vocab"));
  EXPECT_THAT(Fault(with("\"a\": 0", "\"a\": 4000000000")), HasSubstr("an integer from 0 to"));
  EXPECT_THAT(Fault(with("\"a\": 0", "\"a\": 1")), HasSubstr("both have id 1"));
  EXPECT_THAT(Fault(with("\"Ġ a\"", "\"Ġ\"")), HasSubstr("model.merges[0]"));
  EXPECT_THAT(Fault(with("[\"a\", \"b\"]", "[\"a\", \"z\"]")), HasSubstr("names \"z\""));
  EXPECT_THAT(Fault(with("[\"a\", \"b\"]", "[\"a\", \"c\"]")), HasSubstr("lacks their union"));
  EXPECT_THAT(Fault(with("\"dropout\": null", "\"dropout\": 0.1")), HasSubstr("model.dropout"));
  EXPECT_THAT(Fault(with("\"BPE\"", "\"Unigram\"")), HasSubstr("model.type \"Unigram\""));
  EXPECT_THAT(Fault(with("\"unk_token\": null", "\"unk_token\": \"z\"")), HasSubstr("unk_token"));
  EXPECT_THAT(Fault(with("\"type\": \"ByteLevel\"", "\"type\": \"Nope\"")),
              HasSubstr("pre_tokenizer.type \"Nope\" is not supported"));
  EXPECT_THAT(Fault(with("\"normalizer\": null", "\"normalizer\": {\"type\": \"Precompiled\"}")),
              HasSubstr("normalizer.type \"Precompiled\""));
  EXPECT_THAT(Fault(with("\"id\": 9", "\"id\": 8")), HasSubstr("added_tokens[0].id"));
  EXPECT_THAT(Fault(with("<|end|>", "")), HasSubstr("added_tokens[0].content is empty"));
  EXPECT_THAT(Fault(with("\"normalizer\": null",
                         R"("normalizer": {"type": "Replace", "pattern": {"Regex": "(a"},
                            "content": ""})")),
              HasSubstr("normalizer.pattern: the regular expression \"(a\" is wrong at byte 2"));
  EXPECT_THAT(Fault(with("\"post_processor\": null",
                         R"("post_processor": {"type": "TemplateProcessing", "single":
                            [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                             {"Sequence": {"id": "A", "type_id": 0}}],
                            "special_tokens": {"<s>": {"id": "<s>", "ids": [99]}}})")),
              HasSubstr("adds id 99, which is no token"));
}

TEST(Tokenizer, IllFormedTextIsReplacedAsByTheLibrary) {
  const std::string path = ReferencePath("language/tokenizers/invalid_utf8.json");
  const std::string folder = ReferencePath("language/tokenizers/gpt2_small");
  if (path.empty() || folder.empty()) GTEST_SKIP() << "needs WEFT_REFERENCE/language/tokenizers";
  const Tokenizer tokenizer = Tokenizer::Load(folder);
  const JsonValue cases = ReadJsonFile(path);
  for (const JsonValue& item : cases.Items()) {
    const std::string& hex = item.Find("hex")->AsString();
    SCOPED_TRACE(hex);
    std::string bytes;
    for (size_t i = 0; i < hex.size(); i += 2) {
      bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    }
    const std::string& replaced = item.Find("replaced_text")->AsString();
    const auto ids = tokenizer.Encode(bytes);
    EXPECT_EQ(ids, tokenizer.Encode(replaced));
    EXPECT_EQ(tokenizer.Decode(ids), replaced);
    const Encoding given = tokenizer.EncodeWithOffsets(bytes);
    const Encoding expected = tokenizer.EncodeWithOffsets(replaced);
    EXPECT_EQ(given.code_points, expected.code_points);
    EXPECT_EQ(given.bytes.back().end, static_cast<int64_t>(bytes.size()));
  }
}

TEST(Tokenizer, RefusesHostileFiles) {
  const std::string folder = ReferencePath("hostile");
  if (folder.empty()) GTEST_SKIP() << "needs WEFT_REFERENCE/hostile";
  const JsonValue manifest = ReadJsonFile(folder + "/manifest.json");
  int files = 0;
  for (const JsonValue& entry : manifest.Find("files")->Items()) {
    if (entry.Find("format")->AsString() != "tokenizer.json") continue;
    const std::string path = folder + "/" + entry.Find("file")->AsString();
    SCOPED_TRACE(path);
    ++files;
    std::string fault;
    try {
      const Tokenizer tokenizer = Tokenizer::Load(path);
      tokenizer.Decode(tokenizer.Encode("ab <x> aab"));
    } catch (const Error& error) {
      fault = error.what();
      EXPECT_THAT(fault, HasSubstr(path));
    }
    EXPECT_TRUE(fault != "" || entry.Find("expect")->AsString() != "reject");
  }
  EXPECT_GT(files, 20);
}

}  // namespace
}  // namespace weft
