// Bodies of OpenAI's API to what is asked; serve_test.cc has the refusals.
#include "program/completion_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/api_error.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CompletionRequest ReadText(const std::string& members, const SamplingOptions& defaults = {}) {
  return ReadCompletionRequest(R"({"model":"m","prompt":"p")" + members + "}",
                               CompletionKind::kText, defaults);
}
CompletionRequest ReadChat(const std::string& messages, const std::string& members = "") {
  return ReadCompletionRequest(R"({"model":"m","messages":)" + messages + members + "}",
                               CompletionKind::kChat, {});
}

TEST(CompletionRequest, ReadsEveryMember) {
  const CompletionRequest request =
      ReadText(R"(,"max_tokens":7,"temperature":0.5,"top_p":0.9,"top_k":40,"min_p":0.05,"n":3,)"
               R"("stop":["a","b"],"seed":-4,"presence_penalty":0.4,"frequency_penalty":-0.25,)"
               R"("repetition_penalty":1.5,"logprobs":2,"stream":true,)"
               R"("stream_options":{"include_usage":true})");
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.max_tokens, 7);
  EXPECT_EQ(request.sampling.temperature, 0.5);
  EXPECT_EQ(request.sampling.top_p, 0.9);
  EXPECT_EQ(request.sampling.top_k, 40);
  EXPECT_EQ(request.sampling.min_p, 0.05);
  EXPECT_EQ(request.samples, 3);
  EXPECT_THAT(request.stop, ElementsAre("a", "b"));
  EXPECT_EQ(request.seed, -4);
  EXPECT_EQ(request.sampling.presence_penalty, 0.4);
  EXPECT_EQ(request.sampling.frequency_penalty, -0.25);
  EXPECT_EQ(request.sampling.repetition_penalty, 1.5);
  EXPECT_TRUE(request.log_probabilities);
  EXPECT_EQ(request.likeliest, 2);
  EXPECT_TRUE(request.stream);
  EXPECT_TRUE(request.include_usage);
}

TEST(CompletionRequest, TakesTheModelsSamplingWhereNothingIsSaid) {
  const SamplingOptions defaults{.temperature = 0.7, .top_k = 20};
  const CompletionRequest request =
      ReadText(R"(,"temperature":null,"top_k":-1,"stop":null,"seed":null)", defaults);
  EXPECT_EQ(request.sampling.temperature, 0.7);
  EXPECT_EQ(request.sampling.top_k, 0);
  EXPECT_FALSE(request.seed);
  EXPECT_FALSE(request.max_tokens);
  const SamplingOptions greedy = DefaultSampling({.do_sample = false, .temperature = 0.7});
  EXPECT_EQ(greedy.temperature, 0);
  EXPECT_EQ(DefaultSampling({}).temperature, 1);
}

TEST(CompletionRequest, IgnoresWhatChangesNothing) {
  EXPECT_NO_THROW(
      ReadText(R"(,"user":"u","metadata":{},"tools":[],"response_format":{"type":"text"},)"
               R"("echo":false,"logit_bias":{},"best_of":1,"suffix":null)"));
  for (const char* member : {R"("tools":[{}])", R"("response_format":{"type":"json_object"})",
                             R"("logit_bias":{"50256":-100})", R"("suffix":"x")", R"("best_of":2)",
                             R"("messages":[])", R"("max_completion_tokens":1)",
                             R"("stream_options":{})", R"("logprobs":true)", R"("seed":1.5)"}) {
    EXPECT_THROW(ReadText(std::string(",") + member), ApiError) << member;
  }
}

TEST(CompletionRequest, ReadsPromptsInEveryForm) {
  using Ids = std::vector<int32_t>;
  const auto read = [](const std::string& prompt) {
    return ReadCompletionRequest(R"({"model":"m","prompt":)" + prompt + "}", CompletionKind::kText,
                                 {})
        .prompts;
  };
  EXPECT_THAT(read(R"("a")"), ElementsAre(CompletionRequest::Prompt("a")));
  EXPECT_THAT(read(R"(["a","b"])"),
              ElementsAre(CompletionRequest::Prompt("a"), CompletionRequest::Prompt("b")));
  EXPECT_THAT(read("[1,2]"), ElementsAre(CompletionRequest::Prompt(Ids{1, 2})));
  EXPECT_THAT(read("[[1],[2,3]]"),
              ElementsAre(CompletionRequest::Prompt(Ids{1}), CompletionRequest::Prompt(Ids{2, 3})));
  for (const char* prompt : {"[]", "1", "[1,\"a\"]", "[-1]", "[1.0]", "[null]", "{}"}) {
    EXPECT_THROW(read(prompt), ApiError) << prompt;
  }
}

TEST(CompletionRequest, MakesContentsPlainAndKeepsOtherMembers) {
  const CompletionRequest request = ReadChat(
      R"([{"role":"developer","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},)"
      R"({"role":"user","content":"c","name":"n"},{"role":"assistant"}])",
      R"(,"max_tokens":5,"max_completion_tokens":6)");
  EXPECT_EQ(request.messages.ToText(),
            R"([{"role":"system","content":"ab"},{"role":"user","content":"c","name":"n"},)"
            R"({"role":"assistant","content":""}])");
  EXPECT_EQ(request.max_tokens, 6);
}

TEST(ApiError, HasTheFormOfTheApi) {
  EXPECT_EQ(ApiError(404, "no \"x\"", "model", "model_not_found").Body(),
            R"({"error":{"message":"no \"x\"","type":"invalid_request_error","param":"model",)"
            R"("code":"model_not_found"}})");
  EXPECT_THAT(ApiError(503, "m").Body(), HasSubstr(R"("type":"server_error","param":null)"));
}

}  // namespace
}  // namespace weft
