#include "language/template/chat_template.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/check.h"
#include "base/file.h"
#include "language/gguf_tokenizer.h"
#include "language/template/interpreter.h"
#include "language/template/syntax.h"
#include "language/template/text_functions.h"
#include "language/unicode.h"

namespace weft {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 26;
// What a rendering may take: a share of its own, and one for each byte that goes in.
constexpr uint64_t kSteps = 500'000, kStepsPerByte = 100;
constexpr uint64_t kBytes = 16 << 20, kBytesPerByte = 256;

std::tm LocalNow() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  localtime_r(&now, &parts);
  return parts;
}

// A special token of tokenizer_config.json: its text, an object with it, or null.
std::string TokenText(const JsonValue& config, std::string_view key) {
  const JsonValue* value = config.Find(key);
  if (value && value->IsObject()) value = value->Find("content");
  return value && value->IsString() ? value->AsString() : std::string();
}

bool IsEmpty(const JsonValue& value) {
  return value.IsNull() || (value.IsArray() && value.Items().empty());
}

}  // namespace

struct ChatTemplate::Templates {
  struct Named {
    std::string name, file;
    jinja::Syntax syntax;
    size_t bytes;  // of the source
  };
  std::vector<Named> list;
  std::vector<std::pair<std::string, std::string>> tokens;  // bos_token and its like

  void Add(const std::string& name, std::string_view source, const std::string& file) {
    if (!IsUtf8(source)) throw Error(ErrorCode::kCorrupt, file + ": the template is no UTF-8");
    list.push_back({name, file, {}, source.size()});
    list.back().syntax = jinja::Parse(source, list.back().file);
  }

  const Named& Find(const std::string& wanted, bool tools) const {
    const auto find = [&](const std::string& name) {
      const auto found = std::ranges::find(list, name, &Named::name);
      return found == list.end() ? nullptr : &*found;
    };
    if (!wanted.empty()) {
      if (const Named* named = find(wanted)) return *named;
      throw Error(ErrorCode::kInvalidArgument,
                  list[0].file + ": there is no template named \"" + wanted + "\"");
    }
    const Named* named = tools ? find("tool_use") : nullptr;
    if (!named) named = find("default");
    if (named) return *named;
    throw Error(ErrorCode::kInvalidArgument,
                list[0].file + ": several templates, none of them named default; name one");
  }
};

ChatTemplate::ChatTemplate(std::unique_ptr<const Templates> templates)
    : templates_(std::move(templates)) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

ChatTemplate ChatTemplate::FromText(std::string_view source, const std::string& file,
                                    const std::string& bos, const std::string& eos) {
  auto templates = std::make_unique<Templates>();
  templates->Add("default", source, file);
  if (!bos.empty()) templates->tokens.emplace_back("bos_token", bos);
  if (!eos.empty()) templates->tokens.emplace_back("eos_token", eos);
  return ChatTemplate(std::move(templates));
}

ChatTemplate ChatTemplate::FromGguf(const GgufTokenizer& gguf, const std::string& file) {
  auto templates = std::make_unique<Templates>();
  if (!gguf.chat_template.empty()) templates->Add("default", gguf.chat_template, file);
  for (const auto& [name, source] : gguf.named_templates) templates->Add(name, source, file);
  if (templates->list.empty()) {
    throw Error(ErrorCode::kInvalidArgument, file + ": the file has no chat template");
  }
  const std::pair<const char*, int64_t> roles[] = {{"bos_token", gguf.bos},
                                                   {"eos_token", gguf.eos},
                                                   {"unk_token", gguf.unknown},
                                                   {"pad_token", gguf.padding}};
  for (const auto& [name, id] : roles) {
    if (id >= 0) templates->tokens.emplace_back(name, gguf.tokens[static_cast<size_t>(id)]);
  }
  return ChatTemplate(std::move(templates));
}

ChatTemplate ChatTemplate::Load(const std::string& path) {
  const std::filesystem::path place(path);
  std::string source = path, config = path;
  if (DirectoryExists(path)) {
    source = (place / "chat_template.jinja").string();
    config = (place / "tokenizer_config.json").string();
  } else if (path.ends_with(".json")) {
    source.clear();
  } else {
    config = (place.parent_path() / "tokenizer_config.json").string();
  }
  auto templates = std::make_unique<Templates>();
  if (!source.empty() && (FileExists(source) || source == path)) {
    templates->Add("default", ReadFile(source, kMaxFileBytes), source);
  }
  if (FileExists(config) || (templates->list.empty() && config == path)) {
    const JsonValue document = ReadJsonFile(config);
    for (const char* name : {"bos_token", "eos_token", "unk_token", "pad_token", "sep_token",
                             "cls_token", "mask_token"}) {
      std::string text = TokenText(document, name);
      if (!text.empty()) templates->tokens.emplace_back(name, std::move(text));
    }
    const JsonValue* found = document.Find("chat_template");
    if (templates->list.empty() && found && found->IsString()) {
      templates->Add("default", found->AsString(), config + ": chat_template");
    } else if (templates->list.empty() && found && found->IsArray()) {
      for (const JsonValue& entry : found->Items()) {
        const JsonValue *name = entry.Find("name"), *text = entry.Find("template");
        if (!name || !name->IsString() || !text || !text->IsString()) {
          throw Error(ErrorCode::kCorrupt,
                      config + ": chat_template: each entry needs a name and a template");
        }
        templates->Add(name->AsString(), text->AsString(),
                       config + ": chat_template " + name->AsString());
      }
    }
  }
  if (templates->list.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                path +
                    ": there is no chat template, neither chat_template.jinja nor "
                    "chat_template in tokenizer_config.json");
  }
  return ChatTemplate(std::move(templates));
}

namespace {

// Bytes of all texts, and a few for each value: what goes into a rendering.
uint64_t SizeOf(const JsonValue& value) {
  uint64_t size = 8;
  if (value.IsString()) size += value.AsString().size();
  if (value.IsArray()) {
    for (const JsonValue& item : value.Items()) size += SizeOf(item);
  }
  if (value.IsObject()) {
    for (const auto& [key, member] : value.Members()) size += key.size() + SizeOf(member);
  }
  return size;
}

jinja::Budget BudgetFor(uint64_t bytes) {
  return {kSteps + kStepsPerByte * bytes, kBytes + kBytesPerByte * bytes};
}

// The text up to the end of the last message, as transformers cuts it.
void CutBehindFinalMessage(const JsonValue& messages, const std::string& file, std::string& text) {
  const JsonValue* content = !messages.IsArray() || messages.Items().empty()
                                 ? nullptr
                                 : messages.Items().back().Find("content");
  if (content && content->IsArray()) {  // parts; the last with text counts
    const auto parts = content->Items();
    content = nullptr;
    for (const JsonValue& part : parts) {
      if (const JsonValue* found = part.Find("text")) content = found;
    }
  }
  if (!content || !content->IsString()) {
    throw Error(ErrorCode::kInvalidArgument,
                file + ": continue_final_message needs a last message with text");
  }
  const std::string& message = content->AsString();
  const std::string stripped = jinja::Strip(message, nullptr, jinja::StripSide::kBoth);
  const std::string left = jinja::Strip(message, nullptr, jinja::StripSide::kLeft);
  const size_t begin = text.rfind(stripped);
  if (begin == std::string::npos) {
    throw Error(ErrorCode::kInvalidArgument,
                file +
                    ": continue_final_message: the last message does not appear in the text "
                    "that the template makes");
  }
  const bool keeps_space = text.compare(begin, left.size(), left) == 0;
  text.resize(begin + (keeps_space ? left.size() : stripped.size()));
}

}  // namespace

RenderedChat ChatTemplate::Render(const JsonValue& messages, const ChatOptions& options) const {
  if (options.continue_final_message && options.add_generation_prompt) {
    throw Error(ErrorCode::kInvalidArgument,
                "continue_final_message and add_generation_prompt exclude each other");
  }
  const Templates::Named& named = templates_->Find(options.template_name, !IsEmpty(options.tools));
  const uint64_t bytes = named.bytes + SizeOf(messages) + SizeOf(options.tools) +
                         SizeOf(options.documents) + SizeOf(options.variables);
  const std::function<std::tm()> clock = options.clock ? options.clock : LocalNow;
  jinja::Interpreter interpreter(named.syntax, named.file, BudgetFor(bytes), clock);
  for (const auto& [name, text] : templates_->tokens) interpreter.Define(name, text);
  interpreter.Define("messages", jinja::Value::FromJson(messages));
  interpreter.Define("tools", jinja::Value::FromJson(options.tools));
  interpreter.Define("documents", jinja::Value::FromJson(options.documents));
  interpreter.Define("add_generation_prompt", options.add_generation_prompt);
  if (options.variables.IsObject()) {
    for (const auto& [name, value] : options.variables.Members()) {
      interpreter.Define(name, jinja::Value::FromJson(value));
    }
  }
  jinja::Rendering rendering = interpreter.Run();
  RenderedChat chat;
  size_t position = 0;
  int64_t points = 0;
  const auto points_at = [&](size_t byte) {
    points += static_cast<int64_t>(
        CountCodePoints(std::string_view(rendering.text).substr(position, byte - position)));
    position = byte;
    return points;
  };
  for (const auto& [begin, end] : rendering.generation) {
    const int64_t first = points_at(begin);
    chat.generation.push_back({first, points_at(end)});
  }
  chat.text = std::move(rendering.text);
  if (options.continue_final_message) CutBehindFinalMessage(messages, named.file, chat.text);
  return chat;
}

RenderedChat ChatTemplate::Render(const std::vector<std::pair<std::string, std::string>>& messages,
                                  const ChatOptions& options) const {
  JsonValue list = JsonValue::MakeArray();
  for (const auto& [role, content] : messages) {
    JsonValue message = JsonValue::MakeObject();
    message.Set("role", JsonValue(role));
    message.Set("content", JsonValue(content));
    list.Append(std::move(message));
  }
  return Render(list, options);
}

std::string ChatTemplate::RenderWith(const JsonValue& variables) const {
  const Templates::Named& named = templates_->Find("", false);
  const std::function<std::tm()> clock = LocalNow;
  jinja::Interpreter interpreter(named.syntax, named.file,
                                 BudgetFor(named.bytes + SizeOf(variables)), clock);
  for (const auto& [name, value] : variables.Members()) {
    interpreter.Define(name, jinja::Value::FromJson(value));
  }
  return interpreter.Run().text;
}

}  // namespace weft
