// Rewards against values worked out by hand and, of GSM8K, against recorded verdicts.
#include "rlhf/rewards.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

#include "base/check.h"
#include "dataflow/zmq_socket.h"
#include "language/json.h"
#include "tests/language/reference_files.h"

namespace weft {
namespace {

struct Holder : Config {
  RewardList rewards;
  void Fields(FieldVisitor& v) override { rewards.Fields(v, "rewards"); }
};

RewardSum Parse(const std::string& yaml) {
  Holder holder;
  ConfigSource::Text("rewards: " + yaml + "\n", "config").Parse(holder);
  return {holder.rewards, {}};
}

double ScoreOf(const std::string& yaml, const ScoredAnswer& answer) {
  return Parse(yaml).Score({}, {&answer, 1})[0];
}
double ScoreOf(const std::string& yaml, const std::string& text) {
  return ScoreOf(yaml, ScoredAnswer{.answer = text, .finished = true});
}

TEST(Rewards, AreWhatTheirWordsSay) {
  EXPECT_DOUBLE_EQ(ScoreOf("[{name: letters, letters: e, weight: 10}]", "eleven"), 5);
  EXPECT_DOUBLE_EQ(ScoreOf("[letters]", ""), 0);
  EXPECT_DOUBLE_EQ(ScoreOf("[letters]", "h\xc3\xa9"), 0);  // two characters, no plain e
  EXPECT_DOUBLE_EQ(ScoreOf("[{name: regex, pattern: \"[0-9]+\"}]", "it is 42."), 1);
  EXPECT_DOUBLE_EQ(ScoreOf("[{name: regex, pattern: \"[0-9]+\", whole: true}]", "it is 42."), 0);
  EXPECT_DOUBLE_EQ(ScoreOf("[{name: regex, pattern: \"[0-9]+\", whole: true}]", "42"), 1);
  EXPECT_DOUBLE_EQ(ScoreOf("[{name: length, target: 4, unit: words}]", "one two three"), 0.75);
  EXPECT_DOUBLE_EQ(ScoreOf("[{name: length, target: 4, unit: characters}]", "123456789"), 0);
  EXPECT_DOUBLE_EQ(ScoreOf("[{name: repetition, n: 2}]", "a b a b a"), 2.0 / 4 - 1);
  EXPECT_DOUBLE_EQ(ScoreOf("[repetition]", "a b"), 0);
  EXPECT_NEAR(ScoreOf("[readability]", "The cat sat on the mat."),
              (206.835 - 1.015 * 6 - 84.6) / 100, 1e-12);
  EXPECT_DOUBLE_EQ(ScoreOf("[finished]", ScoredAnswer{.answer = "a", .finished = false}), 0);
  EXPECT_DOUBLE_EQ(
      ScoreOf("[exact]", ScoredAnswer{.answer = " 7\n", .expected = "7", .finished = true}), 1);
  const std::vector<int32_t> ids(12);
  EXPECT_DOUBLE_EQ(ScoreOf("[{name: length, target: 10}]", ScoredAnswer{.answer_ids = ids}), 0.8);
  EXPECT_DOUBLE_EQ(
      ScoreOf("[{name: overlong, max_tokens: 16, buffer: 8}]", ScoredAnswer{.answer_ids = ids}),
      -0.5);
}

TEST(Rewards, AddUpByTheirWeights) {
  RewardSum sum = Parse("[{name: letters, letters: a}, {name: letters, letters: b, weight: 3}]");
  const ScoredAnswer answer{.answer = "abbc"};
  std::vector<RewardSum::Part> parts;
  EXPECT_DOUBLE_EQ(sum.Score({}, {&answer, 1}, &parts)[0], 0.25 + 3 * 0.5);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].name, "letters");
  EXPECT_EQ(parts[1].name, "letters_2");
  EXPECT_DOUBLE_EQ(parts[1].score[0], 0.5);
}

TEST(Rewards, Gsm8kVerdictsAreThoseOfTheReference) {
  const std::string path = ReferencePath("datasets/gsm8k_scoring_cases.json");
  if (path.empty()) GTEST_SKIP() << "WEFT_REFERENCE is unset: no reference data to compare with";
  const JsonValue cases = ReadJsonFile(path);
  int64_t compared = 0;
  for (const JsonValue& row : cases.Find("cases")->Items()) {
    double want = 0;
    if (!row.Find("score")->GetDouble(want)) continue;
    const ScoredAnswer answer{.answer = row.Find("response")->AsString(),
                              .expected = row.Find("answer")->AsString()};
    EXPECT_EQ(ScoreOf("[gsm8k]", answer), want) << answer.answer;
    ++compared;
  }
  EXPECT_GT(compared, 5);
}

TEST(Rewards, SimilarityIsTheCosineOfEmbeddings) {
  const std::string data = WEFT_TEST_DATA "/language/";
  RewardSum similarity = Parse("[{name: similarity, path: " + data + "encoder}]");
  const JsonValue recorded = ReadJsonFile(data + "encoder_mean.json");
  const auto text = [&](size_t i) { return recorded.Find("texts")->Items()[i].AsString(); };
  // Recorded embeddings have length 1.
  const auto cosine = [&](size_t a, size_t b) {
    double sum = 0;
    for (size_t i = 0; i < 32; ++i) {
      double x = 0, y = 0;
      recorded.Find("embeddings")->Items()[a].Items()[i].GetDouble(x);
      recorded.Find("embeddings")->Items()[b].Items()[i].GetDouble(y);
      sum += x * y;
    }
    return sum;
  };
  const std::vector<ScoredAnswer> answers = {{.answer = text(1), .expected = text(2)},
                                             {.answer = text(3), .expected = text(3)},
                                             {.answer = "", .expected = text(2)},
                                             {.answer = text(1), .expected = text(2)}};
  const std::vector<double> scores = similarity.Score({}, answers);
  EXPECT_NEAR(scores[0], cosine(1, 2), 1e-6);
  EXPECT_NEAR(scores[1], 1, 1e-12);
  EXPECT_NEAR(scores[2], cosine(0, 2), 1e-6);
  EXPECT_EQ(scores[3], scores[0]);
  EXPECT_LT(scores[0], 0.99);

  const ScoredAnswer alone{.prompt = "Why?", .answer = "So."};
  try {
    similarity.Score({}, {&alone, 1});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_THAT(error.message(), testing::HasSubstr("rewards.similarity"));
    EXPECT_THAT(error.message(), testing::HasSubstr("no completion"));
    EXPECT_THAT(error.message(), testing::HasSubstr("Why?"));
  }
}

// A peer that answers one request with a text; what it was asked comes back.
std::string AnswerOnce(ZmqSocket& socket, const std::string& reply) {
  std::string peer;
  std::vector<uint8_t> frame;
  while (!socket.Receive(&peer, &frame)) socket.Wait(-1, 100);
  const auto* const bytes = reinterpret_cast<const uint8_t*>(reply.data());
  socket.Send(peer, {bytes, reply.size()});
  socket.Wait(-1, 200);  // until it is on its way
  return {frame.begin(), frame.end()};
}

std::string FaultOfRemote(const std::string& reply, std::vector<double>* scores = nullptr) {
  const auto socket = ZmqSocket::Listen("tcp://127.0.0.1:*");
  std::string request;
  std::thread peer([&] { request = AnswerOnce(*socket, reply); });
  std::string fault;
  try {
    RewardSum sum = Parse("[{name: zmq, address: \"" + socket->endpoint() +
                          "\", timeout_seconds: 10, attempts: 1}]");
    const std::vector<ScoredAnswer> answers = {{.prompt = "P", .answer = "a", .expected = "x"},
                                               {.prompt = "Q", .answer = "b"}};
    const auto got = sum.Score({}, answers);
    if (scores != nullptr) *scores = got;
  } catch (const Error& error) {
    fault = error.message();
  }
  peer.join();
  EXPECT_EQ(request, R"({"query":["Pa","Qb"],"prompts":["P","Q"],"labels":["x",""]})");
  return fault;
}

TEST(Rewards, ComeFromAnotherProgram) {
  std::vector<double> scores;
  EXPECT_EQ(FaultOfRemote(R"({"rewards":[0.5,-2]})", &scores), "");
  EXPECT_EQ(scores, (std::vector<double>{0.5, -2}));
}

TEST(Rewards, FaultsOfAnotherProgramAreNamed) {
  using testing::HasSubstr;
  EXPECT_THAT(FaultOfRemote(R"({"rewards":[1]})"), HasSubstr("1 scores for 2 answers"));
  EXPECT_THAT(FaultOfRemote(R"({"rewards":[1,"x"]})"), HasSubstr("reward 1 is not a number"));
  EXPECT_THAT(FaultOfRemote(R"({"reward":[1,2]})"), HasSubstr("no list \"rewards\""));
  EXPECT_THAT(FaultOfRemote("nonsense"), HasSubstr("rewards.zmq"));
}

TEST(Rewards, APeerThatIsAwayIsAnErrorThatNamesIt) {
  for (const char* yaml :
       {"[{name: zmq, address: \"tcp://127.0.0.1:9\", timeout_seconds: 0.1, attempts: 1}]",
        "[{name: http, url: \"http://127.0.0.1:9/get_reward\", timeout_seconds: 1, attempts: "
        "1}]"}) {
    try {
      ScoreOf(yaml, "a");
      FAIL() << yaml;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
      EXPECT_THAT(error.message(), testing::HasSubstr("127.0.0.1:9")) << yaml;
    }
  }
}

}  // namespace
}  // namespace weft
