#include "language/chat_model.h"

#include <algorithm>
#include <set>

#include "base/file.h"
#include "language/gguf_tokenizer.h"
#include "language/model_name.h"

namespace weft {
std::optional<ChatTemplate> LoadTemplateOf(const ModelFile& file) {
  if (file.gguf() != nullptr) {
    const GgufTokenizer vocabulary = ReadGgufTokenizer(*file.gguf());
    if (vocabulary.chat_template.empty()) return std::nullopt;
    return ChatTemplate::FromGguf(vocabulary, file.path());
  }
  const std::string config = file.path() + "/tokenizer_config.json";
  const bool there = FileExists(file.path() + "/chat_template.jinja") ||
                     (FileExists(config) && ReadJsonFile(config).Find("chat_template") != nullptr);
  if (!there) return std::nullopt;
  return ChatTemplate::Load(file.path());
}

Tokenizer LoadTokenizerOf(const ModelFile& file) {
  if (file.gguf() == nullptr) return Tokenizer::Load(file.path());
  return Tokenizer::FromGguf(ReadGgufTokenizer(*file.gguf()), file.path());
}

std::vector<int32_t> StopIds(const ModelFile& file, const Tokenizer& tokenizer) {
  std::set<int32_t> ids;
  for (const int64_t id : file.config().eos) ids.insert(static_cast<int32_t>(id));
  for (const int32_t id : {tokenizer.special().eos, tokenizer.special().eot}) {
    if (id >= 0) ids.insert(id);
  }
  return {ids.begin(), ids.end()};
}

std::vector<int32_t> ChatModel::Encode(const JsonValue& messages) const {
  if (!chat_template) {
    throw Error(ErrorCode::kInvalidArgument,
                file->path() + " has no chat template; continue plain text with weft generate");
  }
  return tokenizer.Encode(chat_template->Render(messages, {.add_generation_prompt = true}).text);
}

ChatModel LoadChatModel(const Context& context, const std::string& name,
                        const LoadOptions& options) {
  auto file = ModelFile::Open(ResolveModel(name));
  Tokenizer tokenizer = LoadTokenizerOf(*file);
  if (tokenizer.size() > file->config().vocabulary) {
    throw Error(ErrorCode::kCorrupt,
                file->path() + ": the tokenizer has " + std::to_string(tokenizer.size()) +
                    " tokens, the model's vocabulary " + std::to_string(file->config().vocabulary));
  }
  ChatModel chat{.file = nullptr,
                 .model = LoadTransformer(context, *file, options),
                 .tokenizer = std::move(tokenizer),
                 .chat_template = LoadTemplateOf(*file),
                 .stop_ids = {}};
  chat.stop_ids = StopIds(*file, chat.tokenizer);
  chat.file = std::move(file);
  return chat;
}

std::string AnswerText::Add(int32_t id) {
  return stopped_ ? std::string() : Release(decoder_.Add(id), false);
}

std::string AnswerText::Finish() {
  return stopped_ ? std::string() : Release(decoder_.Finish(), true);
}

std::string AnswerText::Release(std::string text, bool all) {
  held_ += text;
  size_t begin = std::string::npos;
  for (const std::string& stop : stops_) begin = std::min(begin, held_.find(stop));
  if (begin != std::string::npos) {
    stopped_ = true;
    return held_.substr(0, begin);
  }
  size_t keep = 0;  // the longest end of the text that begins a stop string
  for (const std::string& stop : stops_) {
    for (size_t length = std::min(stop.size(), held_.size() + 1) - 1; !all && length > keep;
         --length) {
      if (held_.ends_with(std::string_view(stop).substr(0, length))) keep = length;
    }
  }
  std::string shown = held_.substr(0, held_.size() - keep);
  held_.erase(0, shown.size());
  return shown;
}

}  // namespace weft
