// Answers as OpenAI's API writes them: whole, or as the chunks of a stream.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "language/generator.h"
#include "language/json.h"
#include "program/completion_request.h"

namespace weft {

// A token as text, with its log-probability.
struct ScoredText {
  std::string text;
  float log_probability = 0;
};

struct AnswerToken {
  ScoredText drawn;
  std::vector<ScoredText> likeliest;
  int64_t offset = 0;  // code points of the answer before it
};

// What an answer has grown by.
struct AnswerPiece {
  int64_t index = 0;  // prompt * samples + sample
  std::string text;
  std::vector<AnswerToken> tokens;  // where log-probabilities are wanted
  FinishReason finish = FinishReason::kNone;
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;  // the one that ended an answer counts
};

class CompletionFormat {
 public:
  // id: of this request, without its prefix. created: seconds since 1970.
  CompletionFormat(const CompletionRequest& request, std::string_view id, int64_t created);

  // answers: each whole, in the order of their indices.
  std::string Whole(const std::vector<AnswerPiece>& answers, const Usage& usage) const;

  // Server-sent events. A chat's answers begin with their role.
  std::string Begin(int64_t index) const;
  std::string Chunk(const AnswerPiece& piece) const;
  std::string End(const Usage& usage) const;

 private:
  JsonValue Frame(const char* chat_object, JsonValue choices) const;
  JsonValue Scores(const std::vector<AnswerToken>& tokens) const;
  std::string Event(JsonValue frame, const Usage* usage) const;

  CompletionKind kind_;
  std::string id_, model_;
  int64_t created_;
  bool log_probabilities_, include_usage_;
};

// {"object": "list", "data": [...]} of one model, or its entry alone.
JsonValue ModelEntry(const std::string& name, int64_t created, int64_t context);
JsonValue ModelList(JsonValue entry);

}  // namespace weft
