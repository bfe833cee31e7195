// weft serve as its clients see it: the real program on a free port, over sockets.
#include <csignal>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <thread>

#include "base/check.h"
#include "language/model_name.h"
#include "tests/program/server_process.h"
#include "tests/program/tiny_chat_model.h"
#include "tests/program/weft_process.h"

namespace weft {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr int64_t kContext = 65536;

constexpr const char* kChat = "/v1/chat/completions";
constexpr const char* kText = "/v1/completions";

Json Text(const std::string& prompt, int64_t tokens, int64_t seed) {
  return {{"model", "tiny"}, {"prompt", prompt}, {"max_tokens", tokens}, {"seed", seed}};
}
Json Chat(const std::string& content, int64_t tokens, int64_t seed) {
  return {{"model", "tiny"},
          {"messages", {{{"role", "user"}, {"content", content}}}},
          {"max_tokens", tokens},
          {"seed", seed}};
}

// The events of a stream; the last must be [DONE].
std::vector<Json> Events(const std::string& body) {
  std::vector<Json> events;
  bool done = false;
  for (size_t begin = 0; begin < body.size();) {
    const size_t end = body.find("\n\n", begin);
    if (end == std::string::npos || done || body.compare(begin, 6, "data: ") != 0) {
      ADD_FAILURE() << "no event: " << body.substr(begin, 100);
      break;
    }
    const std::string data = body.substr(begin + 6, end - begin - 6);
    begin = end + 2;
    done = data == "[DONE]";
    if (!done) events.push_back(Json::parse(data));  // which refuses ill-formed UTF-8
  }
  EXPECT_TRUE(done);
  return events;
}

class Serve : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder = new TemporaryFolder;
    WriteTinyChatModel(Model(), kContext);
    server = new ServerProcess({"serve", Model(), "--threads", "2", "--max-body", "100000"});
  }
  static void TearDownTestSuite() {
    delete server;
    delete folder;
  }
  static std::string Model() { return folder->Path("tiny"); }

  static TemporaryFolder* folder;
  static ServerProcess* server;
};
TemporaryFolder* Serve::folder = nullptr;
ServerProcess* Serve::server = nullptr;

TEST_F(Serve, SaysItsModelAndCountsTokens) {
  const Json models = Json::parse(server->Get("/v1/models").body);
  EXPECT_EQ(models["data"][0]["id"], "tiny");
  EXPECT_EQ(models["data"][0]["max_model_len"], kContext);
  EXPECT_EQ(Json::parse(server->Get("/v1/models/tiny").body)["id"], "tiny");

  const Json chat = server->Complete(kChat, Chat("hello", 12, 1));
  EXPECT_EQ(chat["object"], "chat.completion");
  EXPECT_EQ(chat["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(chat["choices"][0]["finish_reason"], "length");
  // A token each: 2 + 3 marks, "user\nhello", "\n", "assistant\n".
  EXPECT_EQ(chat["usage"]["prompt_tokens"], 1 + 4 + 1 + 5 + 1 + 1 + 1 + 10);
  EXPECT_EQ(chat["usage"]["completion_tokens"], 12);
  EXPECT_EQ(chat["usage"]["total_tokens"], 24 + 12);

  Json two = Text("abc", 5, 1);
  two["prompt"] = {"abc", "defgh"};
  two["n"] = 2;
  const Json text = server->Complete(kText, two);
  EXPECT_EQ(text["choices"].size(), 4u);
  EXPECT_EQ(text["choices"][3]["index"], 3);
  EXPECT_EQ(text["usage"]["prompt_tokens"], 8);
  EXPECT_EQ(text["usage"]["completion_tokens"], 20);
  // Ids say the same as their text.
  Json ids = Text("", 5, 1);
  ids["prompt"] = {97, 98, 99};
  EXPECT_EQ(server->Complete(kText, ids)["choices"][0]["text"],
            server->Complete(kText, Text("abc", 5, 1))["choices"][0]["text"]);
}

TEST_F(Serve, AStreamSaysWhatTheWholeAnswerSays) {
  for (const bool is_chat : {true, false}) {
    Json body = is_chat ? Chat("hello", 300, 4) : Text("hello", 300, 4);
    body["n"] = 2;
    const char* path = is_chat ? kChat : kText;
    const Json whole = server->Complete(path, body);
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};
    const HttpAnswer answer = server->Post(path, body.dump());
    EXPECT_THAT(answer.headers, HasSubstr("text/event-stream"));
    std::string text[2], finish[2];
    const std::vector<Json> events = Events(answer.body);
    EXPECT_GE(events.size(), is_chat ? 5u : 3u);  // pieces grow while they wait
    for (const Json& event : events) {
      if (event["choices"].empty()) continue;
      const Json& choice = event["choices"][0];
      const int index = choice["index"];
      EXPECT_EQ(finish[index], "") << "something after the end";
      text[index] += is_chat ? choice["delta"].value("content", "") : std::string(choice["text"]);
      if (!choice["finish_reason"].is_null()) finish[index] = choice["finish_reason"];
      EXPECT_TRUE(event["usage"].is_null());
    }
    EXPECT_EQ(events.back()["usage"], whole["usage"]);
    for (int i = 0; i < 2; ++i) {
      const Json& choice = whole["choices"][i];
      EXPECT_EQ(text[i], is_chat ? choice["message"]["content"] : choice["text"]);
      EXPECT_EQ(finish[i], choice["finish_reason"]);
    }
    EXPECT_NE(text[0], text[1]);
  }
}

TEST_F(Serve, LeavesAStopStringOutAndEndsThere) {
  Json body = Text("hello", 200, 7);
  body["n"] = 2;
  const Json free = server->Complete(kText, body)["choices"];
  const std::string text = free[0]["text"];
  // Characters that stand together in the first answer.
  size_t at = text.size() / 2;
  while ((text[at] & 0xC0) == 0x80) ++at;
  size_t end = at + 3;
  while ((text[end] & 0xC0) == 0x80) ++end;
  const std::string stop = text.substr(at, end - at);
  body["stop"] = {stop, "what it never says"};
  const Json whole = server->Complete(kText, body);
  EXPECT_EQ(whole["choices"][0]["text"], text.substr(0, text.find(stop)));
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "stop");
  const std::string other = free[1]["text"];
  EXPECT_EQ(whole["choices"][1]["text"], other.substr(0, other.find(stop)));
  EXPECT_LT(whole["usage"]["completion_tokens"], 400);
}

TEST_F(Serve, ReportsLogProbabilitiesOfTheDistributionDrawnFrom) {
  Json body = Chat("hello", 6, 3);
  body["logprobs"] = true;
  body["top_logprobs"] = 3;
  body["temperature"] = 0;
  const Json content = server->Complete(kChat, body)["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 6u);
  for (const Json& token : content) {
    ASSERT_EQ(token["top_logprobs"].size(), 3u);
    EXPECT_EQ(token["top_logprobs"][0]["token"], token["token"]);
    EXPECT_EQ(token["top_logprobs"][0]["logprob"], token["logprob"]);
    EXPECT_GE(token["top_logprobs"][1]["logprob"], token["top_logprobs"][2]["logprob"]);
    EXPECT_LT(token["logprob"], 0);
  }
  Json text = Text("hello", 6, 3);
  text["logprobs"] = 1;
  const Json scores = server->Complete(kText, text)["choices"][0]["logprobs"];
  EXPECT_EQ(scores["tokens"].size(), 6u);
  EXPECT_EQ(scores["token_logprobs"].size(), 6u);
  EXPECT_EQ(scores["text_offset"][0], 0);
}

TEST_F(Serve, SaysTheSameAloneAndUnderLoad) {
  std::vector<Json> bodies;
  for (int i = 0; i < 12; ++i) {
    Json body = Text("prompt " + std::string(static_cast<size_t>(i * 17), 'x'), 40 + i, i);
    if (i % 3 == 1) body["top_p"] = 0.8;
    if (i % 4 == 2) {
      body["repetition_penalty"] = 1.3;
      body["presence_penalty"] = 0.4;
      body["frequency_penalty"] = 0.25;
    }
    if (i % 5 == 3) body["n"] = 3;
    bodies.push_back(body);
  }
  std::vector<Json> alone, together(bodies.size());
  for (const Json& body : bodies) alone.push_back(server->Complete(kText, body));
  std::vector<std::thread> clients;
  for (size_t i = 0; i < bodies.size(); ++i) {
    clients.emplace_back([&, i] { together[i] = server->Complete(kText, bodies[i]); });
  }
  for (std::thread& client : clients) client.join();
  for (size_t i = 0; i < bodies.size(); ++i) {
    EXPECT_EQ(alone[i]["choices"], together[i]["choices"]) << bodies[i];
    EXPECT_EQ(alone[i]["usage"], together[i]["usage"]);
  }
}

TEST_F(Serve, CancelsWhatAClientLeavesAndOthersGoOn) {
  const Json other = Text("another", 60, 9);
  const Json alone = server->Complete(kText, other)["choices"];
  for (const bool stream : {true, false}) {
    const int64_t cancelled = server->Health()["cancelled"];
    Json body = Text("hello", kContext - 10, 1);
    body["stream"] = stream;
    HttpClient client(server->port());
    client.Post(kText, body.dump());
    if (stream) {
      EXPECT_THAT(client.Receive(), HasSubstr("200 OK"));
    } else {
      EXPECT_TRUE(server->Reaches("in_progress", 1));
    }
    client.Close();
    EXPECT_EQ(server->Complete(kText, other)["choices"], alone);
    EXPECT_TRUE(server->Reaches("cancelled", cancelled + 1));
    EXPECT_TRUE(server->Reaches("in_progress", 0));
  }
}

TEST_F(Serve, CancelsAClientThatDoesNotReadAndOthersGoOn) {
  const int64_t cancelled = server->Health()["cancelled"];
  Json body = Text("hello", kContext - 10, 1);
  body["stream"] = true;
  body["n"] = 8;
  HttpClient client(server->port(), 4096);
  client.Post(kText, body.dump());
  EXPECT_TRUE(server->Reaches("in_progress", 1));
  EXPECT_EQ(server->Complete(kText, Text("a", 20, 2))["usage"]["completion_tokens"], 20);
  EXPECT_TRUE(server->Reaches("cancelled", cancelled + 1));
  EXPECT_TRUE(server->Reaches("in_progress", 0));
}

TEST_F(Serve, RefusesWhatIsWrongWithItsPlace) {
  struct Case {
    const char* path;
    std::string body;
    int status;
    const char* param;  // "": null
    const char* says;
  };
  Json long_prompt = Text(std::string(kContext + 5, 'a'), 4, 1);
  Json long_answer = Text("abcd", kContext, 1);
  Json unknown = Text("a", 1, 1);
  unknown["temprature"] = 1;
  Json other_model = Text("a", 1, 1);
  other_model["model"] = "gpt-4";
  const Case cases[] = {
      {kText, "{\"model\": \"tiny\", \"prompt\":", 400, "", "byte"},
      {kText, "{\"model\": \"tiny\", \"prompt\": \"\xC3\x28\"}", 400, "", "UTF-8"},
      {kText, "[1]", 400, "", "object"},
      {kText, "", 400, "", "byte 0"},
      {kText, std::string(90000, '['), 400, "", "nested"},
      {kText, R"({"prompt": "a"})", 400, "model", "model"},
      {kText, R"({"model": "tiny", "prompt": "a", "temperature": "hot"})", 400, "temperature",
       "a number"},
      {kText, R"({"model": "tiny", "prompt": "a", "temperature": 3})", 400, "temperature", "2"},
      {kText, R"({"model": "tiny", "prompt": "a", "max_tokens": 0})", 400, "max_tokens", "1.."},
      {kText, R"({"model": "tiny", "prompt": "a", "n": 1000000})", 400, "n", "128"},
      {kText, R"({"model": "tiny", "prompt": "a", "echo": true})", 400, "echo", "not supported"},
      {kText, R"({"model": "tiny", "prompt": "a", "stop": ""})", 400, "stop", "bytes"},
      {kText, R"({"model": "tiny", "prompt": ""})", 400, "prompt", "one token"},
      {kText, R"({"model": "tiny", "prompt": [258]})", 400, "prompt", "257"},
      {kText, unknown.dump(), 400, "temprature", "did you mean \"temperature\""},
      {kText, other_model.dump(), 404, "model", "gpt-4"},
      {kText, long_prompt.dump(), 400, "prompt", "the prompt has 65541 tokens"},
      {kText, long_prompt.dump(), 400, "prompt", "65536 tokens"},
      {kText, long_answer.dump(), 400, "prompt", "lower max_tokens to 65532"},
      {kChat, R"({"model": "tiny", "messages": []})", 400, "messages", "empty"},
      {kChat, R"({"model": "tiny", "messages": [{"role": "pope", "content": "x"}]})", 400,
       "messages[0].role", "system"},
      {kChat,
       R"({"model": "tiny", "messages": [{"role": "user", "content": [{"type": "image_url"}]}]})",
       400, "messages[0].content", "parts"},
      {kChat, R"({"model": "tiny", "prompt": "x"})", 400, "prompt", "Unrecognized"},
      {"/v1/embeddings", "{}", 404, "", "/v1/completions"},
      {"/v1/models", "{}", 405, "", "POST"},
      {kText, std::string(100001, ' '), 413, "", "100000"},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(std::string(test.path) + " " + test.body.substr(0, 100));
    const HttpAnswer answer = server->Post(test.path, test.body);
    EXPECT_EQ(answer.status, test.status);
    const Json error = Json::parse(answer.body)["error"];
    EXPECT_THAT(std::string(error["message"]), HasSubstr(test.says));
    EXPECT_EQ(error["param"], *test.param != 0 ? Json(test.param) : Json());
    EXPECT_EQ(error["type"], "invalid_request_error");
    EXPECT_TRUE(error.contains("code"));
  }
  EXPECT_EQ(server->Get(kText).status, 405);
  EXPECT_EQ(server->Health()["in_progress"], 0);
}

TEST_F(Serve, RefusesMalformedHttpAndBodiesWithoutEnd) {
  for (const std::string& text :
       {std::string("GARBAGE\r\n\r\n"), std::string("GET / HTTP/9.9\r\n\r\n"),
        "GET /" + std::string(9000, 'x') + " HTTP/1.1\r\n\r\n"}) {
    HttpClient client(server->port());
    client.Send(text);
    const int status = client.ReadAnswer().status;
    EXPECT_TRUE(status == 400 || status == 414 || status == 404) << status;
  }
  // Headers that never end are cut off.
  HttpClient endless(server->port());
  bool open = endless.Send("GET /health HTTP/1.1\r\n");
  for (int i = 0; i < 3000 && open; ++i)
    open = endless.Send("X-Header: " + std::string(90, 'x') + "\r\n");
  EXPECT_NE(endless.ReadAnswer().status, 200);
  // A body in chunks has no length; what it says of itself may be a lie.
  HttpClient chunks(server->port());
  chunks.Send("POST " + std::string(kText) +
              " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
              "Transfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 120 && open; ++i)
    open = chunks.Send("400\r\n" + std::string(1024, ' ') + "\r\n");
  EXPECT_EQ(chunks.ReadAnswer().status, 413);
  HttpClient lie(server->port());
  lie.Send("POST " + std::string(kText) +
           " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
           "Content-Length: 99999999999999999\r\n\r\n{}");
  EXPECT_EQ(lie.ReadAnswer().status, 413);
  HttpClient form(server->port());
  form.Send("POST " + std::string(kText) + " HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}");
  EXPECT_EQ(form.ReadAnswer().status, 415);
  EXPECT_EQ(server->Get("/health").status, 200);
}

TEST_F(Serve, KeepsAConnectionForTheNextRequest) {
  HttpClient client(server->port());
  const std::string body = Text("abc", 3, 1).dump();
  for (int i = 0; i < 20; ++i) {
    client.Send("POST " + std::string(kText) +
                " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
    std::string answer = client.Receive();
    while (!answer.empty() && answer.find("total_tokens") == std::string::npos) {
      answer += client.Receive();
    }
    ASSERT_THAT(answer, HasSubstr("200 OK")) << i;
  }
}

TEST_F(Serve, WantsItsTokenAndSaysWhenItIsFull) {
  setenv("WEFT_SERVE_TOKEN", "secret", 1);
  ServerProcess guarded({"serve", Model(), "--max-requests", "1", "--threads", "1"});
  unsetenv("WEFT_SERVE_TOKEN");
  const std::string body = Text("abc", 3, 1).dump();
  EXPECT_EQ(guarded.Get("/health").status, 200);
  EXPECT_EQ(guarded.Get("/v1/models").status, 401);
  EXPECT_EQ(guarded.Post(kText, body).status, 401);
  EXPECT_EQ(guarded.Post(kText, body, "Authorization: Bearer secreT\r\n").status, 401);
  EXPECT_EQ(guarded.Post(kText, body, "Authorization: Bearer secret2\r\n").status, 401);
  const HttpAnswer wrong = guarded.Post(kText, body, "Authorization: Bearer \r\n");
  EXPECT_EQ(wrong.status, 401);
  EXPECT_EQ(Json::parse(wrong.body)["error"]["code"], "invalid_api_key");
  const std::string right = "Authorization: Bearer secret\r\n";
  for (int i = 0; i < 30; ++i) {
    ASSERT_EQ(guarded.Post(kText, body, right).status, 200)
        << "whoever has its answer finds the place free that it took";
  }

  HttpClient busy(guarded.port());
  busy.Post(kText, Text("hello", kContext - 10, 1).dump(), right);
  EXPECT_TRUE(guarded.Reaches("in_progress", 1));
  const HttpAnswer full = guarded.Post(kText, body, right);
  EXPECT_EQ(full.status, 429);
  EXPECT_THAT(full.headers, HasSubstr("Retry-After: "));
  EXPECT_EQ(Json::parse(full.body)["error"]["code"], "rate_limit_exceeded");
  busy.Close();
  EXPECT_TRUE(guarded.Reaches("in_progress", 0));
  EXPECT_EQ(guarded.Post(kText, body, right).status, 200);
}

TEST_F(Serve, EndsWithinThreeSecondsOfAnInterrupt) {
  ServerProcess own({"serve", Model(), "--threads", "1"});
  const WeftProcess second;
  const auto taken = second.Run("serve " + Model() + " --port " + std::to_string(own.port()));
  EXPECT_EQ(taken.status, 70);
  EXPECT_THAT(taken.error, HasSubstr("--port"));

  HttpClient idle(own.port()), whole(own.port());
  Json body = Text("hello", kContext - 10, 1);
  body["n"] = 8;
  whole.Post(kText, body.dump());
  EXPECT_TRUE(own.Reaches("in_progress", 1));
  const auto begin = Clock::now();
  EXPECT_EQ(own.Stop(), 0);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(3));
  const HttpAnswer answer = whole.ReadAnswer();
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.body, HasSubstr("shutting down"));
}

TEST_F(Serve, FinishesShortAnswersBeforeItEnds) {
  ServerProcess own({"serve", Model(), "--threads", "1"});
  HttpClient client(own.port());
  Json body = Text("hello", 100, 1);
  body["stream"] = true;
  client.Post(kText, body.dump());
  std::string text = client.Receive();
  EXPECT_EQ(own.Stop(), 0);
  for (std::string part = client.Receive(); !part.empty(); part = client.Receive()) text += part;
  EXPECT_THAT(text, HasSubstr("[DONE]"));
}

TEST(ServeRealModel, AnswersAQuestion) {
  try {
    ResolveModel("smollm2-135m-instruct");
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  ServerProcess server({"serve", "smollm2-135m-instruct"});
  Json body = Chat("What is the capital of France?", 20, 1);
  body["model"] = "smollm2-135m-instruct";
  body["temperature"] = 0;
  const Json answer = server.Complete(kChat, body);
  EXPECT_THAT(std::string(answer["choices"][0]["message"]["content"]), HasSubstr("Paris"));
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
  // 8 tokens, of which the last is no text; they come one by one.
  body["stream"] = true;
  const std::vector<Json> events = Events(server.Post(kChat, body.dump()).body);
  EXPECT_GT(events.size(), 5u);
  std::string text;
  for (const Json& event : events) text += event["choices"][0]["delta"].value("content", "");
  EXPECT_EQ(text, answer["choices"][0]["message"]["content"]);
}

}  // namespace
}  // namespace weft
