#include "program/completion_request.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/text.h"
#include "program/api_error.h"

namespace weft {
namespace {

constexpr int64_t kMaxSamples = 128, kMaxLikeliest = 20;  // of OpenAI's API
constexpr size_t kMaxStops = 16, kMaxStopBytes = 1000;    // OpenAI's takes 4
constexpr int64_t kTextMaxTokens = 16;                    // default of OpenAI's /v1/completions

// Members that cannot change the answer here.
constexpr std::array kIgnored = {"metadata",
                                 "parallel_tool_calls",
                                 "prompt_cache_key",
                                 "prompt_cache_retention",
                                 "safety_identifier",
                                 "service_tier",
                                 "store",
                                 "user"};

// Members that are not supported, and the values that ask for nothing.
struct Unsupported {
  std::string_view name;
  std::array<std::string_view, 2> neutral;
};
constexpr std::array kUnsupported = {
    Unsupported{"audio", {}},
    Unsupported{"best_of", {"1", ""}},
    Unsupported{"echo", {"false", ""}},
    Unsupported{"function_call", {R"("none")", R"("auto")"}},
    Unsupported{"functions", {"[]", ""}},
    Unsupported{"logit_bias", {"{}", ""}},
    Unsupported{"modalities", {R"(["text"])", ""}},
    Unsupported{"prediction", {}},
    Unsupported{"reasoning_effort", {}},
    Unsupported{"response_format", {R"({"type":"text"})", ""}},
    Unsupported{"suffix", {R"("")", ""}},
    Unsupported{"tool_choice", {R"("none")", R"("auto")"}},
    Unsupported{"tools", {"[]", ""}},
    Unsupported{"verbosity", {}},
    Unsupported{"web_search_options", {}},
};

// Members that are read, and which kind of request has them alone.
struct Known {
  std::string_view name;
  std::optional<CompletionKind> only = std::nullopt;
};
constexpr std::array kKnown = {
    Known{"frequency_penalty"},
    Known{"logprobs"},
    Known{"max_completion_tokens", CompletionKind::kChat},
    Known{"max_tokens"},
    Known{"messages", CompletionKind::kChat},
    Known{"min_p"},
    Known{"model"},
    Known{"n"},
    Known{"presence_penalty"},
    Known{"prompt", CompletionKind::kText},
    Known{"repetition_penalty"},
    Known{"seed"},
    Known{"stop"},
    Known{"stream"},
    Known{"stream_options"},
    Known{"temperature"},
    Known{"top_k"},
    Known{"top_logprobs", CompletionKind::kChat},
    Known{"top_p"},
};

[[noreturn]] void Refuse(const std::string& param, const std::string& message,
                         const std::string& code = "") {
  throw ApiError(400, message, param, code);
}

void CheckMembers(const JsonValue& body, CompletionKind kind) {
  std::vector<std::string> names;
  for (const Known& known : kKnown) {
    if (!known.only || known.only == kind) names.emplace_back(known.name);
  }
  for (const auto& [name, value] : body.Members()) {
    if (std::ranges::find(names, name) != names.end() ||
        std::ranges::find(kIgnored, name) != kIgnored.end()) {
      continue;
    }
    const auto unsupported = std::ranges::find(kUnsupported, name, &Unsupported::name);
    if (unsupported == kUnsupported.end()) {
      const std::string shown = name.substr(0, 64);
      Refuse(shown, "Unrecognized request argument supplied: " + shown + DidYouMean(shown, names));
    }
    const bool neutral =
        value.IsNull() ||
        std::ranges::find(unsupported->neutral, value.ToText()) != unsupported->neutral.end();
    if (!neutral) Refuse(name, "\"" + name + "\" is not supported by this server: leave it out");
  }
}

// The members of one object; null counts as not there.
class Members {
 public:
  explicit Members(const JsonValue& object) : object_(object) {}

  const JsonValue* Find(std::string_view name) const {
    const JsonValue* value = object_.Find(name);
    return value == nullptr || value->IsNull() ? nullptr : value;
  }

  bool Flag(const std::string& name) const {
    const JsonValue* value = Find(name);
    if (value == nullptr) return false;
    if (!value->IsBool()) Wrong(name, "a boolean", *value);
    return value->AsBool();
  }

  // Whole numbers in [low, high].
  std::optional<int64_t> Integer(const std::string& name, int64_t low, int64_t high) const {
    const JsonValue* value = Find(name);
    if (value == nullptr) return std::nullopt;
    int64_t number = 0;
    if (!value->GetInteger(number)) Wrong(name, "a whole number", *value);
    if (number < low || number > high) {
      Refuse(name, fmt::format("{} is {}, but must be in {}..{}", name, number, low, high));
    }
    return number;
  }

  // low is excluded when `open`.
  void Number(const std::string& name, double low, double high, bool open, double& out) const {
    const JsonValue* value = Find(name);
    if (value == nullptr) return;
    if (!value->GetDouble(out)) Wrong(name, "a number", *value);
    if (out < low || out > high || (open && out == low)) {
      Refuse(name, fmt::format("{} is {}, but must be {} {} and at most {}", name, out,
                               open ? "above" : "at least", low, high));
    }
  }

  [[noreturn]] static void Wrong(const std::string& name, std::string_view wanted,
                                 const JsonValue& value) {
    Refuse(name, fmt::format("{} must be {}, not {}", name, wanted, value.KindName()));
  }

 private:
  const JsonValue& object_;
};

// A content as one string: itself, nothing, or parts of text.
std::string ContentText(const JsonValue& content, const std::string& place) {
  if (content.IsNull()) return "";
  if (content.IsString()) return content.AsString();
  if (!content.IsArray()) Members::Wrong(place, "a string or an array of parts", content);
  std::string text;
  for (const JsonValue& part : content.Items()) {
    const JsonValue* type = part.Find("type");
    const JsonValue* words = part.Find("text");
    if (type == nullptr || !type->IsString() || type->AsString() != "text" || words == nullptr ||
        !words->IsString()) {
      Refuse(place, place +
                        ": parts other than {\"type\": \"text\", \"text\": ...} are not "
                        "supported by this server");
    }
    text += words->AsString();
  }
  return text;
}

JsonValue ReadMessages(const Members& members) {
  const JsonValue* messages = members.Find("messages");
  if (messages == nullptr) Refuse("messages", "messages is missing", "missing_required_parameter");
  if (!messages->IsArray()) Members::Wrong("messages", "an array", *messages);
  if (messages->Items().empty()) Refuse("messages", "messages is empty");
  static constexpr std::array kRoles = {"assistant", "developer", "system", "tool", "user"};
  JsonValue out = JsonValue::MakeArray();
  for (size_t i = 0; i < messages->Items().size(); ++i) {
    const JsonValue& message = messages->Items()[i];
    const std::string place = fmt::format("messages[{}]", i);
    if (!message.IsObject()) Members::Wrong(place, "an object", message);
    const JsonValue* role = message.Find("role");
    if (role == nullptr || !role->IsString() ||
        std::ranges::find(kRoles, role->AsString()) == kRoles.end()) {
      Refuse(place + ".role", place + ".role must be system, developer, user, assistant or tool");
    }
    JsonValue copy = message;
    // Templates know OpenAI's newer word under its old name.
    if (role->AsString() == "developer") copy.Set("role", JsonValue("system"));
    const JsonValue* content = message.Find("content");
    if (content == nullptr && role->AsString() != "assistant") {
      Refuse(place + ".content", place + ".content is missing");
    }
    copy.Set("content", JsonValue(content == nullptr ? std::string()
                                                     : ContentText(*content, place + ".content")));
    out.Append(std::move(copy));
  }
  return out;
}

std::vector<int32_t> ReadIds(const JsonValue& array) {
  std::vector<int32_t> ids;
  for (const JsonValue& item : array.Items()) {
    int64_t id = 0;
    if (!item.GetInteger(id) || id < 0 || id > INT32_MAX) {
      Refuse("prompt", "prompt: a list is of strings, of token ids or of lists of token ids");
    }
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

std::vector<CompletionRequest::Prompt> ReadPrompts(const Members& members) {
  const JsonValue* prompt = members.Find("prompt");
  if (prompt == nullptr) Refuse("prompt", "prompt is missing", "missing_required_parameter");
  if (prompt->IsString()) return {prompt->AsString()};
  if (!prompt->IsArray()) Members::Wrong("prompt", "a string or an array", *prompt);
  if (prompt->Items().empty()) Refuse("prompt", "prompt is an empty list");
  if (prompt->Items().front().IsNumber()) return {ReadIds(*prompt)};
  std::vector<CompletionRequest::Prompt> prompts;
  for (const JsonValue& item : prompt->Items()) {
    if (item.IsString()) {
      prompts.emplace_back(item.AsString());
    } else if (item.IsArray()) {
      prompts.emplace_back(ReadIds(item));
    } else {
      Members::Wrong("prompt", "a list of strings or of lists of token ids", item);
    }
  }
  return prompts;
}

std::vector<std::string> ReadStops(const Members& members) {
  const JsonValue* stop = members.Find("stop");
  if (stop == nullptr) return {};
  const std::span<const JsonValue> items =
      stop->IsArray() ? stop->Items() : std::span<const JsonValue>(stop, 1);
  std::vector<std::string> stops;
  for (const JsonValue& item : items) {
    if (!item.IsString()) Members::Wrong("stop", "a string or a list of strings", item);
    if (item.AsString().empty() || item.AsString().size() > kMaxStopBytes) {
      Refuse("stop", fmt::format("stop: each string has 1 to {} bytes", kMaxStopBytes));
    }
    stops.push_back(item.AsString());
  }
  if (stops.size() > kMaxStops) {
    Refuse("stop",
           fmt::format("stop has {} strings, at most {} are allowed", stops.size(), kMaxStops));
  }
  return stops;
}

void ReadSampling(const Members& members, SamplingOptions& sampling) {
  members.Number("temperature", 0, 2, false, sampling.temperature);
  members.Number("top_p", 0, 1, true, sampling.top_p);
  members.Number("min_p", 0, 1, false, sampling.min_p);
  members.Number("presence_penalty", -2, 2, false, sampling.presence_penalty);
  members.Number("frequency_penalty", -2, 2, false, sampling.frequency_penalty);
  members.Number("repetition_penalty", 0, 100, true, sampling.repetition_penalty);
  // -1 stands for all in other servers.
  if (const auto k = members.Integer("top_k", -1, INT32_MAX)) {
    sampling.top_k = std::max<int64_t>(0, *k);
  }
}

// logprobs is a flag of chats and a number of plain text.
void ReadLogProbabilities(const Members& members, CompletionRequest& request) {
  if (request.kind == CompletionKind::kText) {
    const auto count = members.Integer("logprobs", 0, kMaxLikeliest);
    request.log_probabilities = count.has_value();
    request.likeliest = count.value_or(0);
    return;
  }
  request.log_probabilities = members.Flag("logprobs");
  request.likeliest = members.Integer("top_logprobs", 0, kMaxLikeliest).value_or(0);
  if (request.likeliest > 0 && !request.log_probabilities) {
    Refuse("top_logprobs", "top_logprobs needs \"logprobs\": true");
  }
}

void ReadStream(const Members& members, CompletionRequest& request) {
  request.stream = members.Flag("stream");
  const JsonValue* options = members.Find("stream_options");
  if (options == nullptr) return;
  if (!options->IsObject()) Members::Wrong("stream_options", "an object", *options);
  if (!request.stream) {
    Refuse("stream_options", "stream_options is only allowed when stream is true");
  }
  for (const auto& [name, value] : options->Members()) {
    if (name != "include_usage" && name != "include_obfuscation") {
      Refuse("stream_options." + name.substr(0, 64),
             "Unrecognized request argument supplied: stream_options." + name.substr(0, 64));
    }
  }
  request.include_usage = Members(*options).Flag("include_usage");
}

}  // namespace

CompletionRequest ReadCompletionRequest(std::string_view body, CompletionKind kind,
                                        const SamplingOptions& defaults) {
  const JsonValue json = ParseJson(body, "the body");
  if (!json.IsObject()) Refuse("", "the body must be a JSON object");
  CheckMembers(json, kind);
  const Members members(json);
  CompletionRequest request{.kind = kind, .sampling = defaults};
  const JsonValue* model = members.Find("model");
  if (model == nullptr) {
    Refuse("model", "you must provide a model parameter", "missing_required_parameter");
  }
  if (!model->IsString()) Members::Wrong("model", "a string", *model);
  request.model = model->AsString();
  if (kind == CompletionKind::kChat) {
    request.messages = ReadMessages(members);
  } else {
    request.prompts = ReadPrompts(members);
  }
  request.max_tokens = members.Integer("max_tokens", 1, INT32_MAX);
  if (const auto newer = members.Integer("max_completion_tokens", 1, INT32_MAX)) {
    request.max_tokens = newer;
  }
  request.samples = members.Integer("n", 1, kMaxSamples).value_or(1);
  request.seed = members.Integer("seed", INT64_MIN, INT64_MAX);
  ReadSampling(members, request.sampling);
  request.stop = ReadStops(members);
  ReadLogProbabilities(members, request);
  ReadStream(members, request);
  return request;
}

std::vector<GenerationRequest> EncodeRequest(const CompletionRequest& request,
                                             const ChatModel& chat, uint64_t seed) {
  const bool is_chat = request.kind == CompletionKind::kChat;
  const std::string param = is_chat ? "messages" : "prompt";
  std::vector<std::vector<int32_t>> prompts;
  if (is_chat) {
    if (!chat.chat_template) {
      Refuse(param, "this model has no chat template: send plain text to /v1/completions");
    }
    prompts.push_back(chat.Encode(request.messages));
  }
  for (const auto& prompt : request.prompts) {
    const auto* text = std::get_if<std::string>(&prompt);
    prompts.push_back(text != nullptr ? chat.tokenizer.Encode(*text, {.add_special = true})
                                      : std::get<std::vector<int32_t>>(prompt));
  }
  const int64_t context = chat.model->config().context;
  const int64_t vocabulary = chat.model->config().vocabulary;
  std::vector<GenerationRequest> out;
  for (auto& prompt : prompts) {
    const int64_t length = std::ssize(prompt);
    if (length == 0) Refuse(param, param + ": a prompt needs at least one token");
    if (length >= context) {
      Refuse(param,
             fmt::format("the prompt has {} tokens, the model's context is {} tokens: shorten it",
                         length, context),
             "context_length_exceeded");
    }
    const int64_t room = context - length;
    if (request.max_tokens.value_or(1) > room) {
      Refuse(param,
             fmt::format("the prompt has {} tokens and the answer may have {}, the model's context "
                         "is {} tokens: shorten the prompt or lower max_tokens to {}",
                         length, *request.max_tokens, context, room),
             "context_length_exceeded");
    }
    const auto outside =
        std::ranges::find_if(prompt, [&](int32_t id) { return id < 0 || id >= vocabulary; });
    if (outside != prompt.end()) {
      Refuse(param, fmt::format("{} has the id {}, the vocabulary ends at {}", param, *outside,
                                vocabulary - 1));
    }
    const int64_t usual = is_chat ? room : std::min(room, kTextMaxTokens);
    const size_t first = out.size() * static_cast<size_t>(request.samples);
    out.push_back({.prompt = std::move(prompt),
                   .samples = request.samples,
                   .max_new_tokens = request.max_tokens.value_or(usual),
                   .stop_ids = chat.stop_ids,
                   .sampling = request.sampling,
                   .seed = request.seed ? static_cast<uint64_t>(*request.seed) : seed,
                   .first_sample = first,
                   .likeliest = request.likeliest});
  }
  return out;
}

SamplingOptions DefaultSampling(const GenerationDefaults& defaults) {
  SamplingOptions sampling;
  sampling.temperature = defaults.do_sample == false ? 0 : defaults.temperature.value_or(1);
  sampling.top_p = defaults.top_p.value_or(1);
  sampling.top_k = defaults.top_k.value_or(0);
  sampling.min_p = defaults.min_p.value_or(0);
  sampling.repetition_penalty = defaults.repetition_penalty.value_or(1);
  sampling.Check();
  return sampling;
}

}  // namespace weft
