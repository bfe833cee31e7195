// Rows of data as a model sees them: the text of its chat template, its tokens, and which of them
// are learnt.
//
// What the assistant said is what the template's {% generation %} blocks wrote. Where a template
// has none, it is what a chat's text has more with an answer than without it, up to the token that
// ends the answer. A template that does not write the beginning of a chat as the beginning of the
// chat's text is refused: there is no telling whose words are whose.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "language/template/chat_template.h"
#include "language/tokenizer/tokenizer.h"
#include "rlhf/dataset.h"
#include "rlhf/examples.h"

namespace weft {

// Of chats, and of prompts with answers; of a text all is learnt, of pairs and verdicts the answer.
enum class LearntPart : uint8_t { kAnswers, kAll };

class RowEncoder {
 public:
  // The words of a model by its path, without its weights.
  RowEncoder(const std::string& model_path, LearntPart part);

  // Throws Error(kInvalidArgument) "FILE:LINE: reason" for a row that this model cannot be shown.
  // Texts that are not chats get what the tokenizer puts before a text and the end token behind.
  Example Encode(const DataRow& row) const;
  // A prompt ready to be answered.
  std::vector<int32_t> EncodePrompt(const DataRow& row) const;
  // What stands between the token that ended a turn of the assistant and its next turn, in which
  // somebody of a role says a text; of a model without a chat template the text alone. Throws
  // Error(kConfig) for a template that does not write turns one behind another.
  std::vector<int32_t> EncodeReply(const std::string& role, const std::string& text) const;
  // Throws Error(kConfig) for a template that cannot write, or leaves out, what the role says.
  void CheckReplies(const std::string& role) const;

  const Tokenizer& tokenizer() const { return tokenizer_; }
  std::span<const int32_t> stop_ids() const { return stop_ids_; }

 private:
  struct Parts {
    std::string prompt, answer;
  };
  const ChatTemplate& Template(const DataRow& row) const;
  std::vector<TextSpan> DerivedSpans(const DataRow& row, const std::string& text) const;
  // Without white space behind the last end token.
  std::string_view CutBehindEnd(std::string_view text) const;
  Parts Split(const DataRow& row, const JsonValue& answer) const;
  MarkedSequence EncodeText(const DataRow& row) const;
  MarkedSequence EncodeChat(const DataRow& row) const;
  MarkedSequence EncodeAnswer(const DataRow& row, const JsonValue& answer) const;

  const LearntPart part_;
  std::string model_;
  Tokenizer tokenizer_;
  std::optional<ChatTemplate> template_;
  std::vector<int32_t> stop_ids_;
};

}  // namespace weft
