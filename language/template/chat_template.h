// Chat templates: a conversation to the text that a model was trained on. The Jinja that Hugging
// Face's transformers runs, as its ImmutableSandboxedEnvironment with trim_blocks, lstrip_blocks,
// loop controls and generation blocks; docs/chat_templates.md says what is left out.
#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "language/json.h"
#include "language/tokenizer/aligned_text.h"

namespace weft {

struct GgufTokenizer;

struct ChatOptions {
  bool add_generation_prompt = false;
  // The text ends inside the last message, for the model to go on with it.
  bool continue_final_message = false;
  JsonValue tools;      // an array, or null
  JsonValue documents;  // an array, or null
  // More names of the template, such as enable_thinking: an object, or null.
  JsonValue variables;
  // Of several named templates; "": "tool_use" when there are tools, else "default".
  std::string template_name;
  std::function<std::tm()> clock;  // what strftime_now reads; empty: the time of this place
};

struct RenderedChat {
  std::string text;
  // In order, what {% generation %} blocks wrote: the assistant's own words. In code points, for
  // TokensWithin.
  std::vector<TextSpan> generation;
};

class ChatTemplate {
 public:
  // A folder with chat_template.jinja or tokenizer_config.json, or such a file. Throws Error naming
  // file and line, also when the file has no template.
  static ChatTemplate Load(const std::string& path);
  // bos and eos are the tokens' texts.
  static ChatTemplate FromText(std::string_view source, const std::string& file,
                               const std::string& bos = "", const std::string& eos = "");
  static ChatTemplate FromGguf(const GgufTokenizer& gguf, const std::string& file);

  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // messages: an array of objects with role and content, as chat APIs have them. Bounded in time
  // and memory by a multiple of what goes in. Throws Error(kInvalidArgument) with the message of
  // raise_exception or what else went wrong, file and line. Thread-safe.
  RenderedChat Render(const JsonValue& messages, const ChatOptions& options = {}) const;
  // {role, content}, ...
  RenderedChat Render(const std::vector<std::pair<std::string, std::string>>& messages,
                      const ChatOptions& options = {}) const;
  // Any template with the names of an object, without those of a chat.
  std::string RenderWith(const JsonValue& variables) const;

 private:
  struct Templates;
  explicit ChatTemplate(std::unique_ptr<const Templates> templates);
  std::unique_ptr<const Templates> templates_;
};

}  // namespace weft
