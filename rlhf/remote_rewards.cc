// Rewards that another program gives, over HTTP or ZeroMQ. The words are OpenRLHF's: {"query":
// prompts with their answers, "prompts": .., "labels": what is expected} is answered by
// {"rewards": [..]}, a number an answer.
#include "base/check.h"
#include "language/json.h"
#include "rlhf/remote_peer.h"
#include "rlhf/rewards.h"

namespace weft {
namespace {

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

class RemoteReward final : public Reward {
 public:
  RemoteReward(const std::string& address, const Patience& patience) : peer_(address, patience) {}
  std::vector<double> Score(const Context&, std::span<const ScoredAnswer> answers) override {
    return Rewards(peer_.Ask(Request(answers)), peer_.address());
  }

 private:
  RemotePeer peer_;
};

struct HttpReward final : RewardConfig {
  std::string url;
  Patience patience;

  void Fields(FieldVisitor& v) override {
    RewardConfig::Fields(v);
    patience.Fields(v);
    v.Field("url", url, "http://HOST:PORT/get_reward");
  }
  void Check() const override {
    if (!url.starts_with("http")) throw ConfigProblem("url", "say http://HOST:PORT/get_reward");
  }
  std::unique_ptr<Reward> Make(const RewardSetting&) const override {
    return std::make_unique<RemoteReward>(url, patience);
  }
};
WEFT_REGISTER_REWARD(HttpReward, "http", "another program's, by OpenRLHF's /get_reward");

struct ZmqReward final : RewardConfig {
  std::string address;
  Patience patience;

  void Fields(FieldVisitor& v) override {
    RewardConfig::Fields(v);
    patience.Fields(v);
    v.Field("address", address, "of a ROUTER socket: tcp://127.0.0.1:PORT or ipc://PATH");
  }
  void Check() const override {
    if (address.empty()) throw ConfigProblem("address", "is missing");
  }
  std::unique_ptr<Reward> Make(const RewardSetting&) const override {
    return std::make_unique<RemoteReward>(address, patience);
  }
};
WEFT_REGISTER_REWARD(ZmqReward, "zmq", "another program's, over ZeroMQ");

}  // namespace
}  // namespace weft
