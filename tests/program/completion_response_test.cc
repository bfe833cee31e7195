// Answers in the words of OpenAI's API, written by hand from its reference.
#include "program/completion_response.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

namespace weft {
namespace {

CompletionFormat Format(CompletionKind kind, bool scores = false, bool usage = false) {
  CompletionRequest request{.kind = kind, .model = "m"};
  request.log_probabilities = scores;
  request.include_usage = usage;
  return CompletionFormat(request, "7", 100);
}

AnswerToken Drawn(const std::string& text, float log_probability) {
  AnswerToken token;
  token.drawn = {text, log_probability};
  return token;
}

TEST(CompletionFormat, WritesWholeAnswers) {
  EXPECT_EQ(
      Format(CompletionKind::kChat)
          .Whole({{.index = 0, .text = "\"hé\"", .tokens = {}, .finish = FinishReason::kStop}},
                 {3, 4}),
      R"({"id":"chatcmpl-7","object":"chat.completion","created":100,"model":"m","choices":[)"
      R"({"index":0,"message":{"role":"assistant","content":"\"hé\"","refusal":null},)"
      R"("logprobs":null,"finish_reason":"stop"}],)"
      R"("usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}})");
  AnswerToken token = Drawn("a", -0.5f);
  token.likeliest = {{"a", -0.5f}, {"\n", -1.5f}, {"a", -3}};
  token.offset = 2;
  EXPECT_EQ(
      Format(CompletionKind::kText, true)
          .Whole({{.index = 0, .text = "a", .tokens = {token}, .finish = FinishReason::kLength}},
                 {1, 1}),
      R"({"id":"cmpl-7","object":"text_completion","created":100,"model":"m","choices":[)"
      R"({"index":0,"text":"a","logprobs":{"tokens":["a"],"token_logprobs":[-0.5],)"
      R"("top_logprobs":[{"a":-0.5,"\n":-1.5}],"text_offset":[2]},)"
      R"("finish_reason":"length"}],)"
      R"("usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}})");
}

TEST(CompletionFormat, WritesEventsOfAChat) {
  const CompletionFormat format = Format(CompletionKind::kChat, true, true);
  const std::string frame =
      R"(data: {"id":"chatcmpl-7","object":"chat.completion.chunk","created":100,"model":"m",)";
  EXPECT_EQ(format.Begin(1),
            frame + R"("choices":[{"index":1,"delta":{"role":"assistant","content":"",)"
                    R"("refusal":null},"logprobs":null,"finish_reason":null}],"usage":null})"
                    "\n\n");
  // A part of a code point has no bytes of its own.
  const AnswerToken token = Drawn("\xEF\xBF\xBD", -1);
  EXPECT_EQ(format.Chunk({.index = 1, .text = "hi", .tokens = {token}}),
            frame + R"("choices":[{"index":1,"delta":{"content":"hi"},"logprobs":{"content":[)"
                    "{\"token\":\"\xEF\xBF\xBD\",\"logprob\":-1.0,\"bytes\":null,"
                    R"("top_logprobs":[]}],"refusal":null},"finish_reason":null}],"usage":null})"
                    "\n\n");
  EXPECT_EQ(format.Chunk({.index = 0, .text = "", .tokens = {}, .finish = FinishReason::kLength}),
            frame + R"("choices":[{"index":0,"delta":{},"logprobs":null,)"
                    R"("finish_reason":"length"}],"usage":null})"
                    "\n\n");
  EXPECT_EQ(format.End({2, 3}),
            frame + R"("choices":[],"usage":{"prompt_tokens":2,"completion_tokens":3,)"
                    R"("total_tokens":5}})"
                    "\n\ndata: [DONE]\n\n");
  EXPECT_EQ(Format(CompletionKind::kChat).End({2, 3}), "data: [DONE]\n\n");
}

TEST(CompletionFormat, WritesEventsOfPlainText) {
  const CompletionFormat format = Format(CompletionKind::kText);
  EXPECT_EQ(format.Begin(0), "");
  EXPECT_EQ(format.Chunk({.index = 0, .text = "hi"}),
            R"(data: {"id":"cmpl-7","object":"text_completion","created":100,"model":"m",)"
            R"("choices":[{"index":0,"text":"hi","logprobs":null,"finish_reason":null}]})"
            "\n\n");
}

TEST(CompletionFormat, WritesMinusInfinityAsANumber) {
  const AnswerToken token = Drawn("a", -std::numeric_limits<float>::infinity());
  EXPECT_THAT(
      Format(CompletionKind::kChat, true).Chunk({.index = 0, .text = "a", .tokens = {token}}),
      testing::HasSubstr("\"logprob\":-9999.0"));
}

}  // namespace
}  // namespace weft
