// A vocabulary learnt on the command line works as any other tokenizer.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/program/weft_process.h"

namespace weft {
namespace {

using Json = nlohmann::json;

TEST(Tokenize, LearnsAVocabularyThatTokenizesItsText) {
  const WeftProcess weft;
  std::string text;
  for (int i = 0; i < 20; ++i) text += "the weaver weaves the weft\nover and under\n";
  weft.Write("one.txt", text);
  weft.Write("two.txt", "under and over, the end");
  const auto learnt = weft.Run(
      "tokenize --train one.txt two.txt --vocabulary 300 --special-token '<|end|>' -o words "
      "--json");
  ASSERT_EQ(learnt.status, 0) << learnt.error;
  const Json summary = Json::parse(learnt.LastLine());
  EXPECT_EQ(summary.at("tokens").get<int>(), 257 + summary.at("merges").get<int>());
  EXPECT_GT(summary.at("merges").get<int>(), 20);
  const auto shown = weft.Run("tokenize words ' the weaver<|end|>' --json");
  ASSERT_EQ(shown.status, 0) << shown.error;
  const Json pieces = Json::parse(shown.LastLine()).at("pieces");
  EXPECT_EQ(pieces.front(), "\u0120the");
  EXPECT_EQ(pieces.back(), "<|end|>");
  EXPECT_EQ(Json::parse(shown.LastLine()).at("ids").back(), 0);

  EXPECT_NE(weft.Run("tokenize --train one.txt -o words").status, 0) << "the folder is there";
  EXPECT_NE(weft.Run("tokenize --train one.txt").error.find("--output"), std::string::npos);
  EXPECT_NE(weft.Run("tokenize --train one.txt --pre nope -o other").error.find("nope"),
            std::string::npos);
  EXPECT_NE(weft.Run("tokenize").error.find("name a model"), std::string::npos);
}

}  // namespace
}  // namespace weft
