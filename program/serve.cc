// weft serve: a language model for clients of OpenAI's API, over HTTP.
//
//   http_server.h         connections, a thread for each
//   completion_request.h  a body -> what the generator is asked
//   completion_service.h  the one thread that runs the model for all of them
//   completion_response.h answers -> JSON or server-sent events
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>
#include <mutex>

#include "base/check.h"
#include "base/log.h"
#include "program/api_error.h"
#include "program/commands.h"
#include "program/completion_request.h"
#include "program/completion_response.h"
#include "program/completion_service.h"
#include "program/end_signal.h"
#include "program/http_server.h"
#include "program/language_machine.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Together below the 3 s in which a process is expected to end.
constexpr milliseconds kDrain{1200};     // for answers in progress
constexpr milliseconds kLastStep{1000};  // for the step in progress
constexpr milliseconds kLastWords{200};  // to tell clients that their answers will not come
constexpr milliseconds kLook{100};       // a waiting thread looks after its client this often
// Seeds of requests without one begin here.
constexpr uint64_t kUnseeded = uint64_t{1} << 63;

// The name that clients use: the last part of a path, without its ending.
std::string ServedName(std::string name) {
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  if (const size_t slash = name.rfind('/'); slash != std::string::npos) name.erase(0, slash + 1);
  if (name.ends_with(".gguf")) name.erase(name.size() - 5);
  return name;
}

// In a time that says nothing of where they differ.
bool Same(std::string_view a, std::string_view b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size() && !b.empty(); ++i) {
    difference |= static_cast<unsigned char>(a[i] ^ b[i % b.size()]);
  }
  return difference == 0;
}

HttpResponse ErrorResponse(const ApiError& error) {
  HttpResponse response{.status = error.status(), .body = error.Body()};
  if (error.status() == 429 || error.status() == 503) response.headers = {{"Retry-After", "1"}};
  if (error.status() == 401) response.headers = {{"WWW-Authenticate", "Bearer"}};
  return response;
}

class Server {
 public:
  Server(const ServeOptions& options, const Context& context, const ChatModel& chat)
      : options_(options),
        chat_(chat),
        name_(ServedName(options.model)),
        sampling_(DefaultSampling(chat.file->generation())),
        service_(context, chat, {.max_requests = options.max_requests}),
        http_({.host = options.host,
               .port = options.port,
               .max_body = static_cast<size_t>(options.max_body),
               .max_connections = static_cast<int>(options.max_requests) + 32},
              {.admit = [this](const HttpRequest& request) { return Admit(request); },
               .handle = [this](const HttpRequest& request) { return Handle(request); },
               .error_body =
                   [](int status, const std::string& message) {
                     return ApiError(status, message).Body();
                   }}) {}

  int port() const { return http_.port(); }
  const std::string& name() const { return name_; }
  CompletionService::Counts counts() const { return service_.counts(); }

  // Answers what is in progress, as far as there is time. False: a step of the model still runs.
  bool Stop() {
    stopping_ = true;
    const auto begin = Clock::now();
    service_.Drain(kDrain);
    http_.Drain(std::chrono::duration_cast<milliseconds>(kDrain - (Clock::now() - begin)));
    const bool stopped = service_.Stop(kLastStep);
    http_.Drain(kLastWords);
    return stopped;
  }

 private:
  std::optional<HttpResponse> Admit(const HttpRequest& request) {
    try {
      return Route(request);
    } catch (const ApiError& error) {
      return ErrorResponse(error);
    }
  }

  std::optional<HttpResponse> Route(const HttpRequest& request) {
    const bool get = request.method == "GET" || request.method == "HEAD";
    if (request.path == "/health" && get) return HttpResponse{.body = Health()};
    CheckToken(request);
    if (stopping_) throw ApiError(503, "the server is shutting down");
    const bool completion =
        request.path == "/v1/chat/completions" || request.path == "/v1/completions";
    const bool models = request.path == "/v1/models" || request.path.starts_with("/v1/models/");
    if (!completion && !models && request.path != "/health") {
      throw ApiError(404,
                     "there is no " + request.path +
                         ", only /v1/chat/completions, "
                         "/v1/completions, /v1/models and /health",
                     "", "unknown_url");
    }
    if (completion != (request.method == "POST") || (!completion && !get)) {
      throw ApiError(405, request.method + " is not allowed on " + request.path, "",
                     "method_not_allowed");
    }
    if (models) return HttpResponse{.body = Models(request.path)};
    if (!request.content_type.starts_with("application/json")) {
      throw ApiError(415, "send the body with the header Content-Type: application/json", "",
                     "unsupported_content_type");
    }
    return std::nullopt;
  }

  void CheckToken(const HttpRequest& request) const {
    if (options_.token.empty()) return;
    if (request.authorization.empty()) {
      throw ApiError(401, "this server wants the header Authorization: Bearer TOKEN", "",
                     "invalid_api_key");
    }
    if (!Same(request.authorization, "Bearer " + options_.token)) {
      throw ApiError(401, "the token is wrong", "", "invalid_api_key");
    }
  }

  std::string Health() const {
    const auto counts = service_.counts();
    return JsonValue::MakeObject({{"status", JsonValue(stopping_ ? "stopping" : "ok")},
                                  {"in_progress", JsonValue(counts.in_progress)},
                                  {"completed", JsonValue(counts.completed)},
                                  {"cancelled", JsonValue(counts.cancelled)},
                                  {"failed", JsonValue(counts.failed)},
                                  {"prompt_tokens", JsonValue(counts.prompt_tokens)},
                                  {"completion_tokens", JsonValue(counts.completion_tokens)}})
        .ToText();
  }

  void CheckModel(const std::string& model) const {
    if (model == name_ || model == options_.model) return;
    throw ApiError(404,
                   "the model \"" + model.substr(0, 200) + "\" does not exist, this server has \"" +
                       name_ + "\"",
                   "model", "model_not_found");
  }

  std::string Models(const std::string& path) const {
    JsonValue entry = ModelEntry(name_, started_, chat_.model->config().context);
    constexpr std::string_view kList = "/v1/models";
    if (path.size() <= kList.size() + 1) return ModelList(std::move(entry)).ToText();
    CheckModel(path.substr(kList.size() + 1));
    return entry.ToText();
  }

  HttpResponse Handle(const HttpRequest& request) {
    try {
      return Complete(request);
    } catch (const ApiError& error) {
      return ErrorResponse(error);
    } catch (const Error& error) {  // malformed JSON; a template that refuses a conversation
      const bool client =
          error.code() == ErrorCode::kCorrupt || error.code() == ErrorCode::kInvalidArgument;
      return ErrorResponse(ApiError(client ? 400 : 500, error.message()));
    } catch (const std::exception& error) {
      return ErrorResponse(ApiError(500, error.what()));
    }
  }

  // What is left of a request when its body has been read.
  struct Prepared {
    CompletionJob job;
    CompletionFormat format;
    int64_t answers;
    bool stream;
  };

  // One body at a time: as values, JSON takes many times its bytes.
  Prepared Prepare(const HttpRequest& http) {
    const std::lock_guard lock(reading_);
    const CompletionKind kind =
        http.path == "/v1/completions" ? CompletionKind::kText : CompletionKind::kChat;
    const CompletionRequest request = ReadCompletionRequest(http.body, kind, sampling_);
    CheckModel(request.model);
    if (std::ssize(request.prompts) > options_.max_requests) {
      throw ApiError(400,
                     fmt::format("prompt has {} prompts, this server takes {} at a time",
                                 request.prompts.size(), options_.max_requests),
                     "prompt");
    }
    const uint64_t number = next_++;
    CompletionJob job{.requests = EncodeRequest(request, chat_, kUnseeded + number),
                      .stop = request.stop,
                      .log_probabilities = request.log_probabilities,
                      .whole = !request.stream};
    const int64_t answers = std::ssize(job.requests) * request.samples;
    return {std::move(job),
            CompletionFormat(request, fmt::format("{:x}-{}", started_, number), std::time(nullptr)),
            answers, request.stream};
  }

  HttpResponse Complete(const HttpRequest& http) {
    Prepared prepared = Prepare(http);
    std::unique_ptr<CompletionStream> stream = service_.Begin(std::move(prepared.job));
    if (stream == nullptr) {
      throw ApiError(429,
                     fmt::format("this server takes {} requests at a time: retry later",
                                 options_.max_requests),
                     "", "rate_limit_exceeded");
    }
    if (prepared.stream) {
      return Stream(std::move(stream), prepared.format, prepared.answers, http.client_gone);
    }
    return Whole(*stream, prepared.format, prepared.answers, http.client_gone);
  }

  static HttpResponse Whole(CompletionStream& stream, const CompletionFormat& format, int64_t count,
                            const std::function<bool()>& client_gone) {
    std::vector<AnswerPiece> answers(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) answers[i].index = i;
    for (auto look = Clock::now() + kLook;;) {
      if (Clock::now() > look) {
        if (client_gone()) return {.status = 499};  // that nobody reads
        look = Clock::now() + kLook;
      }
      AnswerPiece piece;
      switch (stream.Next(kLook, piece)) {
        case CompletionStream::Status::kPiece: {
          AnswerPiece& answer = answers[piece.index];
          answer.text += piece.text;
          std::ranges::move(piece.tokens, std::back_inserter(answer.tokens));
          answer.finish = piece.finish;
          break;
        }
        case CompletionStream::Status::kNothing:
          break;
        case CompletionStream::Status::kEnd:
          return {.body = format.Whole(answers, stream.usage())};
        case CompletionStream::Status::kFailed:
          throw ApiError(503, stream.error());
      }
    }
  }

  static HttpResponse Stream(std::shared_ptr<CompletionStream> stream,
                             const CompletionFormat& format, int64_t answers,
                             const std::function<bool()>& client_gone) {
    std::string first;
    for (int64_t i = 0; i < answers; ++i) first += format.Begin(i);
    auto next = [stream = std::move(stream), format, client_gone, first = std::move(first),
                 ended = false]() mutable -> std::optional<std::string> {
      if (!first.empty()) return std::exchange(first, "");
      while (!ended) {
        AnswerPiece piece;
        switch (stream->Next(kLook, piece)) {
          case CompletionStream::Status::kPiece:
            return format.Chunk(piece);
          case CompletionStream::Status::kNothing:
            ended = client_gone();
            break;
          case CompletionStream::Status::kEnd:
            ended = true;
            return format.End(stream->usage());
          case CompletionStream::Status::kFailed:
            ended = true;
            return "data: " + ApiError(503, stream->error()).Body() + "\n\n";
        }
      }
      return std::nullopt;
    };
    return {.content_type = "text/event-stream",
            .headers = {{"Cache-Control", "no-cache"}},
            .next_piece = std::move(next)};
  }

  const ServeOptions& options_;
  const ChatModel& chat_;
  const std::string name_;
  const SamplingOptions sampling_;
  const int64_t started_ = std::time(nullptr);
  std::mutex reading_;
  uint64_t next_ = 0;  // numbers requests; of who reads
  std::atomic<bool> stopping_{false};
  CompletionService service_;
  HttpServer http_;  // last: it calls all above
};

}  // namespace

int Serve(const ServeOptions& options) {
  const LanguageMachine machine(options.threads);
  const ChatModel chat = LoadChatModel(machine.context, options.model,
                                       LoadOptionsOf(options.precision, options.adapter));
  if (options.token.find_first_of(" \r\n") != std::string::npos) {
    throw Error(ErrorCode::kConfig, "--token: spaces and line ends cannot be sent in a header");
  }
  CatchSignals();
  Server server(options, machine.context, chat);
  const bool local =
      options.host.starts_with("127.") || options.host == "localhost" || options.host == "::1";
  if (!local && options.token.empty()) {
    LogWarn("anybody who reaches " + options.host +
            " can use this server: set a token (WEFT_SERVE_TOKEN)");
  }
  const std::string host =
      options.host.find(':') != std::string::npos ? "[" + options.host + "]" : options.host;
  fmt::print(
      "serving {} on http://{}:{}/v1 (context of {} tokens, {} requests at a time); Ctrl-C "
      "ends\n",
      server.name(), host, server.port(), chat.model->config().context, options.max_requests);
  std::fflush(stdout);
  AwaitSignal();
  LogInfo("ending: answers in progress have " + std::to_string(kDrain.count()) + " ms");
  if (!server.Stop()) {
    LogWarn("ending within a step of the model");
    std::fflush(nullptr);
    std::_Exit(0);
  }
  const auto counts = server.counts();
  if (options.json) {
    fmt::print("{}\n", JsonValue::MakeObject({{"completed", JsonValue(counts.completed)},
                                              {"cancelled", JsonValue(counts.cancelled)},
                                              {"failed", JsonValue(counts.failed)}})
                           .ToText());
  }
  return 0;
}

}  // namespace weft
