// The bodies of POST /v1/chat/completions and /v1/completions, read and checked. Members that would
// change the answer and are not supported are refused by name, as are unknown ones; those that
// cannot change it (user, metadata, ...) are ignored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "language/chat_model.h"
#include "language/generator.h"
#include "language/json.h"

namespace weft {

enum class CompletionKind { kChat, kText };

struct CompletionRequest {
  using Prompt = std::variant<std::string, std::vector<int32_t>>;

  CompletionKind kind = CompletionKind::kChat;
  std::string model;
  JsonValue messages;           // of a chat: roles and contents, contents as plain strings
  std::vector<Prompt> prompts;  // of plain text
  std::optional<int64_t> max_tokens;
  int64_t samples = 1;
  SamplingOptions sampling;
  std::vector<std::string> stop;
  std::optional<int64_t> seed;
  bool log_probabilities = false;
  int64_t likeliest = 0;  // alternatives listed beside each token
  bool stream = false, include_usage = false;
};

// defaults: sampling where the client says nothing. Throws ApiError.
CompletionRequest ReadCompletionRequest(std::string_view body, CompletionKind kind,
                                        const SamplingOptions& defaults);

// What the generator is asked, one request for each prompt; seed where the client gave none. Throws
// ApiError, naming both lengths for a prompt that does not fit the context.
std::vector<GenerationRequest> EncodeRequest(const CompletionRequest& request,
                                             const ChatModel& chat, uint64_t seed);

// The model's own values, else those of OpenAI's API.
SamplingOptions DefaultSampling(const GenerationDefaults& defaults);

}  // namespace weft
