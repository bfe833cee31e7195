#include "language/tokenizer/train_bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "base/file.h"
#include "language/json.h"
#include "language/tokenizer/tokenizer.h"
#include "language/tokenizer_files.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

TEST(TrainBpe, MergesTheMostFrequentPairThenThatOfTheLowestIds) {
  // (a, b) occurs 5 times, as does (c, d), and a has the lower id; then (a, ab) occurs 3 times.
  const std::vector<std::string_view> texts = {"aab", "aab", "aab", "ab", "ab",
                                               "cd",  "cd",  "cd",  "cd", "cd"};
  const GgufTokenizer trained = TrainBpe(texts, {.vocabulary = 270, .min_count = 2});
  EXPECT_THAT(trained.merges, ElementsAre("a b", "c d", "a ab"));
  EXPECT_EQ(trained.tokens.size(), 259u);
  EXPECT_EQ(trained.tokens[258], "aab");
  EXPECT_EQ(trained.tokens[0], "!");  // the bytes stand in the order of their code points
  EXPECT_THAT(TrainBpe(texts, {.vocabulary = 257}).merges, ElementsAre("a b"));
  EXPECT_THAT(TrainBpe(texts, {.vocabulary = 270, .min_count = 4}).merges,
              ElementsAre("a b", "c d"));
}

// Merges and tokens in the order in which the `tokenizers` library learns them, see
// make_bpe_merges.py.
TEST(TrainBpe, LearnsWhatTheLibraryLearns) {
  const std::string text = ReadFile(WEFT_TEST_DATA "/language/bpe_text.txt");
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin) + 1;
    lines.push_back(std::string_view(text).substr(begin, end - begin));
    begin = end;
  }
  const JsonValue page = ReadJsonFile(WEFT_TEST_DATA "/language/bpe_merges.json");
  ASSERT_EQ(page.Members().size(), 2u);
  const auto texts = [](const JsonValue& list) {
    std::vector<std::string> values;
    for (const JsonValue& item : list.Items()) values.push_back(item.AsString());
    return values;
  };
  for (const auto& [pre, want] : page.Members()) {
    BpeTraining training{.pre = pre, .specials = texts(*want.Find("specials"))};
    ASSERT_TRUE(want.Find("vocabulary")->GetInteger(training.vocabulary));
    const GgufTokenizer learnt = TrainBpe(lines, training);
    EXPECT_EQ(learnt.merges, texts(*want.Find("merges"))) << pre;
    EXPECT_EQ(learnt.tokens, texts(*want.Find("tokens"))) << pre;
  }
}

TEST(TrainBpe, CountsOverlapsOnce) {
  // aaaaa: four pairs, but two merges; then (aa, aa) and (aa, a) occur once a word.
  const std::vector<std::string_view> texts = {"aaaaa", "aaaaa"};
  EXPECT_THAT(TrainBpe(texts, {.vocabulary = 270}).merges, ElementsAre("a a", "aa a", "aa aaa"));
}

TEST(TrainBpe, MakesATokenizerThatATokenizerJsonKeeps) {
  const std::vector<std::string_view> texts = {"low lower lowest \xC3\xA9t\xC3\xA9 12 12",
                                               "slow slower \xFF"};
  const GgufTokenizer trained =
      TrainBpe(texts, {.vocabulary = 300, .pre = "qwen2", .specials = {"<|end|>", "<pad>"}});
  const Tokenizer direct = Tokenizer::FromGguf(trained, "trained");
  const Tokenizer read = Tokenizer::FromJson(TokenizerJson(trained, "trained"), "tokenizer.json");
  const std::string text = "slowest<|end|> 123 caf\xC3\xA9";
  EXPECT_EQ(direct.Decode(direct.Encode(text)), text);
  EXPECT_EQ(direct.Encode(text), read.Encode(text));
  EXPECT_EQ(direct.size(), read.size());
  EXPECT_TRUE(read.IsSpecial(0));
  EXPECT_EQ(read.Find("<pad>"), 1);
  EXPECT_LT(direct.Encode("slower").size(), 4u);
}

TEST(TrainBpe, RefusesWhatHasNoRoom) {
  EXPECT_THROW(TrainBpe({}, {.vocabulary = 255}), Error);
  EXPECT_THROW(TrainBpe({}, {.vocabulary = 300, .specials = {"<s>", "<s>"}}), Error);
  EXPECT_THROW(TrainBpe({}, {.vocabulary = 300, .pre = "nope"}), Error);
}

}  // namespace
}  // namespace weft
