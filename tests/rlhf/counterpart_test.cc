// Counterparts that are other programs: what they are asked, and what becomes of those that are
// away, late or wrong.
#include "rlhf/counterpart.h"

#include <chrono>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

#include "base/check.h"
#include "dataflow/zmq_socket.h"
#include "program/http_server.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// Two episodes: one goes on, the other's turn was cut.
const std::vector<Dialogue> kDialogues = {
    {.prompt = "P", .expected = "x", .turns = {"a", "go on", "b"}},
    {.prompt = "Q", .expected = "", .turns = {"c"}, .finished = false}};
constexpr char kAsked[] =
    R"({"prompts":["P","Q"],"labels":["x",""],"turns":[["a","go on","b"],["c"]],)"
    R"("finished":[true,false]})";
constexpr char kGood[] = R"({"replies":["say more",null],"scores":[0.5,-2]})";

std::vector<Reply> Ask(const std::string& peer, double seconds = 10, int64_t attempts = 1) {
  EpisodeConfig config;
  config.peer = peer;
  config.turns = 3;
  config.patience = {.timeout_seconds = seconds, .attempts = attempts};
  return MakeCounterpart(config, "")->Answer(kDialogues);
}

struct Fault {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
};
Fault FaultOf(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return {error.code(), error.message()};
  }
  return {};
}

// Another program over ZeroMQ, with an answer to each request it gets.
class ZmqPeer {
 public:
  explicit ZmqPeer(std::vector<std::string> replies, int late_milliseconds = 0)
      : socket_(ZmqSocket::Listen("tcp://127.0.0.1:*")),
        thread_([this, replies, late_milliseconds] {
          for (const std::string& reply : replies) {
            std::string peer;
            std::vector<uint8_t> frame;
            while (!socket_->Receive(&peer, &frame)) socket_->Wait(-1, 20);
            asked_.assign(frame.begin(), frame.end());
            if (&reply == &replies[0]) {
              std::this_thread::sleep_for(std::chrono::milliseconds(late_milliseconds));
            }
            socket_->Send(peer, {reinterpret_cast<const uint8_t*>(reply.data()), reply.size()});
            socket_->Wait(-1, 100);  // until it is on its way
          }
        }) {}
  ~ZmqPeer() { thread_.join(); }
  std::string address() const { return socket_->endpoint(); }
  const std::string& asked() const { return asked_; }

 private:
  const std::unique_ptr<ZmqSocket> socket_;
  std::string asked_;
  std::thread thread_;
};

// And over HTTP.
class HttpPeer {
 public:
  explicit HttpPeer(const HttpResponse& reply)
      : server_({}, {.admit = [](const HttpRequest&) { return std::nullopt; },
                     .handle =
                         [this, reply](const HttpRequest& request) {
                           asked_ = request.body;
                           return reply;
                         },
                     .error_body = [](int, const std::string& message) { return message; }}) {}
  std::string address() const {
    return "http://127.0.0.1:" + std::to_string(server_.port()) + "/turns";
  }
  const std::string& asked() const { return asked_; }

 private:
  std::string asked_;
  HttpServer server_;
};

void ExpectGood(const std::vector<Reply>& replies) {
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_EQ(replies[0].text, "say more");
  EXPECT_FALSE(replies[0].over);
  EXPECT_EQ(replies[0].score, 0.5);
  EXPECT_TRUE(replies[1].over);
  EXPECT_EQ(replies[1].score, -2);
}

TEST(RemoteCounterpart, SaysTheSameOverZeroMqAndHttp) {
  const ZmqPeer zmq({kGood});
  ExpectGood(Ask(zmq.address()));
  EXPECT_EQ(zmq.asked(), kAsked);
  const HttpPeer http({.body = kGood});
  ExpectGood(Ask(http.address()));
  EXPECT_EQ(http.asked(), kAsked);
}

TEST(RemoteCounterpart, ThatIsWrongIsNamedWithWhatIsWrong) {
  for (const auto& [reply, reason] :
       {std::pair{R"({"replies":["a"],"scores":[1,2]})", "no list \"replies\" of 2"},
        {R"({"replies":["a",null,"b"],"scores":[1,2]})", "no list \"replies\" of 2"},
        {R"({"replies":["a",null],"scores":[1]})", "no list \"scores\" of 2"},
        {R"({"replies":["a",null]})", "no list \"scores\" of 2"},
        {R"({"replies":["a",7],"scores":[1,2]})", "reply 1 is neither text nor null"},
        {R"({"replies":["a",null],"scores":["x",2]})", "score 0 is not a number"},
        {R"({"replies":["a",null],"scores":[1,NaN]})", "byte"},
        {R"(["a",null])", "no list \"replies\" of 2"},
        {"nonsense", "byte"}}) {
    const HttpPeer http({.body = reply});
    const Fault fault = FaultOf([&] { Ask(http.address()); });
    EXPECT_EQ(fault.code, ErrorCode::kCorrupt) << reply;
    EXPECT_THAT(fault.message, StartsWith("episodes.peer: " + http.address() + ": ")) << reply;
    EXPECT_THAT(fault.message, HasSubstr(reason));
  }
  const ZmqPeer zmq({R"({"replies":[],"scores":[]})"});
  EXPECT_THAT(FaultOf([&] { Ask(zmq.address()); }).message,
              StartsWith("episodes.peer: " + zmq.address() + ": no list"));
}

TEST(RemoteCounterpart, ThatIsAwayIsNamed) {
  for (const char* address : {"tcp://127.0.0.1:9", "http://127.0.0.1:9/turns"}) {
    const Fault fault = FaultOf([&] { Ask(address, 0.2); });
    EXPECT_EQ(fault.code, ErrorCode::kUnavailable);
    EXPECT_THAT(fault.message, StartsWith("episodes.peer: " + std::string(address))) << address;
  }
  const HttpPeer broken({.status = 503, .body = "out of order"});
  EXPECT_THAT(FaultOf([&] { Ask(broken.address()); }).message,
              HasSubstr("status 503, out of order"));
}

TEST(RemoteCounterpart, ThatIsLateIsAskedAgainAndItsLateAnswerIsNotTaken) {
  constexpr char kLate[] = R"({"replies":["late",null],"scores":[9,9]})";
  const ZmqPeer once({kLate}, 400);
  EXPECT_THAT(FaultOf([&] { Ask(once.address(), 0.2); }).message, HasSubstr("no answer within"));
  const ZmqPeer twice({kLate, kGood}, 400);
  ExpectGood(Ask(twice.address(), 0.3, 2));
}

}  // namespace
}  // namespace weft
