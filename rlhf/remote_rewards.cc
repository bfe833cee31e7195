// Rewards that another program gives, over HTTP or ZeroMQ. The words are OpenRLHF's: {"query":
// prompts with their answers, "prompts": .., "labels": what is expected} is answered by
// {"rewards": [..]}, a number an answer.
#include <chrono>
#include <thread>

#include "base/check.h"
#include "base/log.h"
#include "dataflow/zmq_socket.h"
#include "language/json.h"
#include "rlhf/http_client.h"
#include "rlhf/rewards.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

std::string Request(std::span<const ScoredAnswer> answers) {
  JsonValue query = JsonValue::MakeArray(), prompts = JsonValue::MakeArray(),
            labels = JsonValue::MakeArray();
  for (const ScoredAnswer& answer : answers) {
    query.Append(JsonValue(answer.prompt + answer.answer));
    prompts.Append(JsonValue(answer.prompt));
    labels.Append(JsonValue(answer.expected));
  }
  return JsonValue::MakeObject({{"query", std::move(query)},
                                {"prompts", std::move(prompts)},
                                {"labels", std::move(labels)}})
      .ToText();
}

std::vector<double> Rewards(const std::string& text, const std::string& peer) {
  const JsonValue json = ParseJson(text, peer);
  const JsonValue* rewards = json.IsObject() ? json.Find("rewards") : nullptr;
  if (rewards == nullptr || !rewards->IsArray()) {
    throw Error(ErrorCode::kCorrupt, peer + ": the answer has no list \"rewards\"");
  }
  std::vector<double> scores;
  for (const JsonValue& item : rewards->Items()) {
    if (!item.GetDouble(scores.emplace_back())) {
      throw Error(ErrorCode::kCorrupt,
                  peer + ": reward " + std::to_string(scores.size() - 1) + " is not a number");
    }
  }
  return scores;
}

struct RemoteConfig : RewardConfig {
  double timeout_seconds = 60;
  int64_t attempts = 3;

  void Fields(FieldVisitor& v) override {
    RewardConfig::Fields(v);
    v.Field("timeout_seconds", timeout_seconds, "for one answer", Range::Positive());
    v.Field("attempts", attempts, "before the run stops", Range::Between(1, 1000));
  }

  // ask() until it answers; waits 1, 2, 4 .. seconds in between.
  std::string Persist(const std::function<std::string()>& ask) const {
    for (int64_t attempt = 1;; ++attempt) {
      try {
        return ask();
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kUnavailable || attempt >= attempts) throw;
        LogWarn(error.message() + "; asking again");
        std::this_thread::sleep_for(
            std::chrono::seconds(int64_t{1} << std::min<int64_t>(attempt - 1, 6)));
      }
    }
  }
};

struct HttpReward final : RemoteConfig {
  std::string url;

  void Fields(FieldVisitor& v) override {
    RemoteConfig::Fields(v);
    v.Field("url", url, "http://HOST:PORT/get_reward");
  }
  void Check() const override {
    if (url.empty()) throw ConfigProblem("url", "is missing");
  }

  std::unique_ptr<Reward> Make(const RewardSetting&) const override;
};
WEFT_REGISTER_REWARD(HttpReward, "http", "another program's, by OpenRLHF's /get_reward");

struct ZmqReward final : RemoteConfig {
  std::string address;

  void Fields(FieldVisitor& v) override {
    RemoteConfig::Fields(v);
    v.Field("address", address, "of a ROUTER socket: tcp://127.0.0.1:PORT or ipc://PATH");
  }
  void Check() const override {
    if (address.empty()) throw ConfigProblem("address", "is missing");
  }

  std::unique_ptr<Reward> Make(const RewardSetting&) const override;
};
WEFT_REGISTER_REWARD(ZmqReward, "zmq", "another program's, over ZeroMQ");

struct HttpClient final : Reward {
  explicit HttpClient(const HttpReward& c) : config(c) {}
  std::vector<double> Score(const Context&, std::span<const ScoredAnswer> answers) override {
    const std::string request = Request(answers);
    return Rewards(
        config.Persist([&] { return PostJson(config.url, request, config.timeout_seconds); }),
        config.url);
  }
  const HttpReward config;
};

std::unique_ptr<Reward> HttpReward::Make(const RewardSetting&) const {
  return std::make_unique<HttpClient>(*this);
}

struct ZmqClient final : Reward {
  explicit ZmqClient(const ZmqReward& c) : config(c) {}

  std::vector<double> Score(const Context&, std::span<const ScoredAnswer> answers) override {
    const std::string request = Request(answers);
    return Rewards(config.Persist([&] { return Ask(request); }), config.address);
  }

  std::string Ask(const std::string& request) {
    if (!socket) socket = ZmqSocket::Connect(config.address);
    const auto* const bytes = reinterpret_cast<const uint8_t*>(request.data());
    const auto end = Clock::now() + std::chrono::duration<double>(config.timeout_seconds);
    bool sent = socket->Send("", {bytes, request.size()});
    std::string peer;
    std::vector<uint8_t> frame;
    while (!sent || !socket->Receive(&peer, &frame)) {
      const double left = std::chrono::duration<double>(end - Clock::now()).count();
      if (left <= 0) {
        socket.reset();  // an answer that comes late must not be taken for the next one's
        throw Error(ErrorCode::kUnavailable, config.address + ": no answer within " +
                                                 std::to_string(config.timeout_seconds) + " s");
      }
      socket->Wait(-1, static_cast<int>(std::min(left, 0.2) * 1000) + 1);
      if (!sent) sent = socket->Send("", {bytes, request.size()});
    }
    return {frame.begin(), frame.end()};
  }

  const ZmqReward config;
  std::unique_ptr<ZmqSocket> socket;
};

std::unique_ptr<Reward> ZmqReward::Make(const RewardSetting&) const {
  return std::make_unique<ZmqClient>(*this);
}

}  // namespace
}  // namespace weft
