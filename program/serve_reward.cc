// weft serve-reward: a reward model for other trainers, by OpenRLHF's protocol: POST /get_reward
// {"query": [texts]} is answered by {"rewards": [numbers]}.
#include <fmt/format.h>
#include <mutex>

#include "base/check.h"
#include "base/log.h"
#include "language/json.h"
#include "program/commands.h"
#include "program/end_signal.h"
#include "program/http_server.h"
#include "program/language_machine.h"
#include "rlhf/reward_model.h"

namespace weft {
namespace {

std::string Fault(const std::string& message) {
  return JsonValue::MakeObject({{"error", JsonValue(message)}}).ToText();
}

class RewardService {
 public:
  RewardService(const Context& context, const std::string& name, Precision precision)
      : context_(context), model_(RewardModel::Load(context, name, precision)) {}

  // The same at every path but /get_reward: 404.
  HttpResponse Answer(const HttpRequest& request) {
    if (request.path != "/get_reward") {
      return {.status = 404, .body = Fault("there is /get_reward alone")};
    }
    try {
      return {.body = Scores(request.body)};
    } catch (const Error& error) {
      const bool theirs =
          error.code() != ErrorCode::kInternal && error.code() != ErrorCode::kDiverged;
      return {.status = theirs ? 400 : 500, .body = Fault(error.message())};
    }
  }

 private:
  std::string Scores(const std::string& body) {
    const JsonValue json = ParseJson(body, "the request");
    const JsonValue* const query = json.IsObject() ? json.Find("query") : nullptr;
    if (query == nullptr || !query->IsArray()) {
      throw Error(ErrorCode::kInvalidArgument, "the request has no list \"query\" of texts");
    }
    std::vector<std::vector<int32_t>> sequences;
    for (const JsonValue& text : query->Items()) {
      const std::string place = "query[" + std::to_string(sequences.size()) + "]";
      if (!text.IsString()) throw Error(ErrorCode::kInvalidArgument, place + " is no text");
      sequences.push_back(model_.tokenizer().Encode(text.AsString()));
      const auto count = std::ssize(sequences.back());
      const int64_t most = model_.chat().model->config().context;
      if (count == 0 || count > most) {
        throw Error(ErrorCode::kInvalidArgument, place + " has " + std::to_string(count) +
                                                     " tokens, between 1 and " +
                                                     std::to_string(most) + " can be scored");
      }
    }
    JsonValue rewards = JsonValue::MakeArray();
    const std::lock_guard lock(mutex_);  // one pass at a time has all threads
    for (const double score : model_.Score(context_, sequences)) {
      rewards.Append(JsonValue(score));
    }
    return JsonValue::MakeObject({{"rewards", std::move(rewards)}}).ToText();
  }

  const Context& context_;
  const RewardModel model_;
  std::mutex mutex_;
};

}  // namespace

int ServeReward(const ServeRewardOptions& options) {
  const LanguageMachine machine(options.threads);
  const LoadOptions load = LoadOptionsOf(options.precision, "");
  if (load.round_rows) {
    throw Error(ErrorCode::kConfig, "--precision int8: rewards are read in auto, bf16 or f32");
  }
  RewardService service(machine.context, options.model, load.precision);
  CatchSignals();
  HttpServer server({.host = options.host, .port = options.port},
                    {.admit = [](const HttpRequest& request) -> std::optional<HttpResponse> {
                       if (request.method == "POST") return std::nullopt;
                       return HttpResponse{.status = 405, .body = Fault("POST to /get_reward")};
                     },
                     .handle = [&](const HttpRequest& request) { return service.Answer(request); },
                     .error_body = [](int, const std::string& message) { return Fault(message); }});
  fmt::print("rewards of {} on http://{}:{}/get_reward; Ctrl-C ends\n", options.model, options.host,
             server.port());
  std::fflush(stdout);
  AwaitSignal();
  server.Drain(std::chrono::milliseconds(1500));
  return 0;
}

}  // namespace weft
