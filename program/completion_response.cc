#include "program/completion_response.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace weft {
namespace {

constexpr float kLeastLogProbability = -9999;  // stands for minus infinity, as in OpenAI's API
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

JsonValue LogProbability(float value) {
  return JsonValue(std::isfinite(value) ? value : kLeastLogProbability);
}

// The bytes of a token, or null when it is a part of a code point.
JsonValue Bytes(const std::string& text) {
  if (text.find(kReplacement) != std::string::npos) return {};
  JsonValue bytes = JsonValue::MakeArray();
  for (const char byte : text) bytes.Append(JsonValue(int{static_cast<unsigned char>(byte)}));
  return bytes;
}

JsonValue ChatScore(const ScoredText& token) {
  return JsonValue::MakeObject({{"token", JsonValue(token.text)},
                                {"logprob", LogProbability(token.log_probability)},
                                {"bytes", Bytes(token.text)}});
}

JsonValue ChatScores(const std::vector<AnswerToken>& tokens) {
  JsonValue content = JsonValue::MakeArray();
  for (const AnswerToken& token : tokens) {
    JsonValue entry = ChatScore(token.drawn);
    JsonValue likeliest = JsonValue::MakeArray();
    for (const ScoredText& other : token.likeliest) likeliest.Append(ChatScore(other));
    entry.Set("top_logprobs", std::move(likeliest));
    content.Append(std::move(entry));
  }
  return JsonValue::MakeObject({{"content", std::move(content)}, {"refusal", {}}});
}

JsonValue TextScores(const std::vector<AnswerToken>& tokens) {
  JsonValue texts = JsonValue::MakeArray(), values = JsonValue::MakeArray(),
            tops = JsonValue::MakeArray(), offsets = JsonValue::MakeArray();
  for (const AnswerToken& token : tokens) {
    texts.Append(JsonValue(token.drawn.text));
    values.Append(LogProbability(token.drawn.log_probability));
    offsets.Append(JsonValue(token.offset));
    JsonValue top = JsonValue::MakeObject();
    for (const ScoredText& other : token.likeliest) {
      // Of tokens with the same text, the likeliest.
      if (top.Find(other.text) == nullptr) {
        top.Set(other.text, LogProbability(other.log_probability));
      }
    }
    tops.Append(std::move(top));
  }
  return JsonValue::MakeObject({{"tokens", std::move(texts)},
                                {"token_logprobs", std::move(values)},
                                {"top_logprobs", std::move(tops)},
                                {"text_offset", std::move(offsets)}});
}

JsonValue FinishText(FinishReason finish) {
  return finish == FinishReason::kNone ? JsonValue() : JsonValue(Name(finish));
}

JsonValue UsageValue(const Usage& usage) {
  return JsonValue::MakeObject(
      {{"prompt_tokens", JsonValue(usage.prompt_tokens)},
       {"completion_tokens", JsonValue(usage.completion_tokens)},
       {"total_tokens", JsonValue(usage.prompt_tokens + usage.completion_tokens)}});
}

JsonValue Choice(int64_t index, const char* name, JsonValue content, JsonValue scores,
                 FinishReason finish) {
  return JsonValue::MakeObject({{"index", JsonValue(index)},
                                {name, std::move(content)},
                                {"logprobs", std::move(scores)},
                                {"finish_reason", FinishText(finish)}});
}

}  // namespace

CompletionFormat::CompletionFormat(const CompletionRequest& request, std::string_view id,
                                   int64_t created)
    : kind_(request.kind),
      id_((kind_ == CompletionKind::kChat ? "chatcmpl-" : "cmpl-") + std::string(id)),
      model_(request.model),
      created_(created),
      log_probabilities_(request.log_probabilities),
      include_usage_(request.include_usage) {}

JsonValue CompletionFormat::Frame(const char* chat_object, JsonValue choices) const {
  const char* object = kind_ == CompletionKind::kChat ? chat_object : "text_completion";
  return JsonValue::MakeObject({{"id", JsonValue(id_)},
                                {"object", JsonValue(object)},
                                {"created", JsonValue(created_)},
                                {"model", JsonValue(model_)},
                                {"choices", std::move(choices)}});
}

JsonValue CompletionFormat::Scores(const std::vector<AnswerToken>& tokens) const {
  if (!log_probabilities_) return {};
  return kind_ == CompletionKind::kChat ? ChatScores(tokens) : TextScores(tokens);
}

std::string CompletionFormat::Whole(const std::vector<AnswerPiece>& answers,
                                    const Usage& usage) const {
  JsonValue choices = JsonValue::MakeArray();
  for (const AnswerPiece& answer : answers) {
    if (kind_ == CompletionKind::kText) {
      choices.Append(Choice(answer.index, "text", JsonValue(answer.text), Scores(answer.tokens),
                            answer.finish));
      continue;
    }
    JsonValue message = JsonValue::MakeObject(
        {{"role", JsonValue("assistant")}, {"content", JsonValue(answer.text)}, {"refusal", {}}});
    choices.Append(
        Choice(answer.index, "message", std::move(message), Scores(answer.tokens), answer.finish));
  }
  JsonValue frame = Frame("chat.completion", std::move(choices));
  frame.Set("usage", UsageValue(usage));
  return frame.ToText();
}

// Where usage is asked for, every event has the member; the last one alone a value.
std::string CompletionFormat::Event(JsonValue frame, const Usage* usage) const {
  if (include_usage_) frame.Set("usage", usage == nullptr ? JsonValue() : UsageValue(*usage));
  return "data: " + frame.ToText() + "\n\n";
}

std::string CompletionFormat::Begin(int64_t index) const {
  if (kind_ == CompletionKind::kText) return "";
  JsonValue delta = JsonValue::MakeObject(
      {{"role", JsonValue("assistant")}, {"content", JsonValue("")}, {"refusal", {}}});
  return Event(Frame("chat.completion.chunk",
                     JsonValue::MakeArray(
                         {Choice(index, "delta", std::move(delta), {}, FinishReason::kNone)})),
               nullptr);
}

std::string CompletionFormat::Chunk(const AnswerPiece& piece) const {
  JsonValue scores = piece.tokens.empty() ? JsonValue() : Scores(piece.tokens);
  JsonValue content(piece.text);
  if (kind_ == CompletionKind::kChat) {
    JsonValue delta = JsonValue::MakeObject();
    if (!piece.text.empty()) delta.Set("content", std::move(content));
    content = std::move(delta);
  }
  return Event(Frame("chat.completion.chunk",
                     JsonValue::MakeArray(
                         {Choice(piece.index, kind_ == CompletionKind::kChat ? "delta" : "text",
                                 std::move(content), std::move(scores), piece.finish)})),
               nullptr);
}

std::string CompletionFormat::End(const Usage& usage) const {
  std::string out;
  if (include_usage_) {
    out = Event(Frame("chat.completion.chunk", JsonValue::MakeArray()), &usage);
  }
  return out + "data: [DONE]\n\n";
}

JsonValue ModelEntry(const std::string& name, int64_t created, int64_t context) {
  return JsonValue::MakeObject({{"id", JsonValue(name)},
                                {"object", JsonValue("model")},
                                {"created", JsonValue(created)},
                                {"owned_by", JsonValue("weft")},
                                {"max_model_len", JsonValue(context)}});
}

JsonValue ModelList(JsonValue entry) {
  return JsonValue::MakeObject(
      {{"object", JsonValue("list")}, {"data", JsonValue::MakeArray({std::move(entry)})}});
}

}  // namespace weft
