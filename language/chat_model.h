// Everything it takes to talk to a model: weights, tokenizer, chat template, and where its answers
// end.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "language/language_model.h"
#include "language/template/chat_template.h"
#include "language/tokenizer/tokenizer.h"

namespace weft {

struct ChatModel {
  std::unique_ptr<ModelFile> file;
  std::unique_ptr<Transformer> model;
  Tokenizer tokenizer;
  std::optional<ChatTemplate> chat_template;  // base models have none
  std::vector<int32_t> stop_ids;              // each ends an answer

  // The ids of a conversation, ready for the answer. Throws Error(kInvalidArgument) naming the
  // model when it has no template.
  std::vector<int32_t> Encode(const JsonValue& messages) const;
};

// A model by its path or name (model_name.h). The tokenizer and the template come from the same
// folder or GGUF.
ChatModel LoadChatModel(const Context& context, const std::string& name,
                        const LoadOptions& options);
Tokenizer LoadTokenizerOf(const ModelFile& file);
std::optional<ChatTemplate> LoadTemplateOf(const ModelFile& file);
// The ids that end an answer: what the config and the tokenizer call an end.
std::vector<int32_t> StopIds(const ModelFile& file, const Tokenizer& tokenizer);

// The text of an answer as its tokens come, until a stop string, which is left out. What may be the
// beginning of one is held back.
class AnswerText {
 public:
  AnswerText(const Tokenizer& tokenizer, std::vector<std::string> stops)
      : decoder_(tokenizer, true), stops_(std::move(stops)) {}

  // What can be shown now.
  std::string Add(int32_t id);
  std::string Finish();
  bool stopped() const { return stopped_; }

 private:
  std::string Release(std::string text, bool all);

  StreamDecoder decoder_;
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace weft
