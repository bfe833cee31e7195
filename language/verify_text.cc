#include "language/verify_text.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>

#include "base/check.h"
#include "base/file.h"
#include "language/gguf.h"
#include "language/gguf_tokenizer.h"
#include "language/unicode.h"

namespace weft {
namespace {

using Path = std::filesystem::path;

bool IsGguf(const std::string& path) {
  return path.ends_with(".gguf");
}

// The member of a recording, which must be there and of the kind that `is` tests.
const JsonValue& Need(const JsonValue& object, std::string_view key, bool (JsonValue::*is)() const,
                      const std::string& file) {
  const JsonValue* value = object.Find(key);
  if (!value || !(value->*is)()) {
    throw Error(ErrorCode::kCorrupt,
                file + ": a case lacks \"" + std::string(key) + "\", or it is of another kind");
  }
  return *value;
}

std::vector<int32_t> IdsOf(const JsonValue& list, const std::string& file) {
  std::vector<int32_t> ids;
  for (const JsonValue& item : list.Items()) {
    int64_t id = -1;
    if (!item.GetInteger(id) || id < 0 || id > INT32_MAX) {
      throw Error(ErrorCode::kCorrupt, file + ": a case has an id that is none");
    }
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

std::vector<TextSpan> SpansOf(const JsonValue& list, const std::string& file) {
  std::vector<TextSpan> spans;
  for (const JsonValue& item : list.Items()) {
    const auto ends = item.IsArray() ? IdsOf(item, file) : std::vector<int32_t>();
    if (ends.size() != 2) throw Error(ErrorCode::kCorrupt, file + ": a span has no two ends");
    spans.push_back({ends[0], ends[1]});
  }
  return spans;
}

std::string TextOf(const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) text += (text.empty() ? "" : " ") + std::to_string(id);
  return "[" + text + "]";
}

std::string TextOf(const std::vector<TextSpan>& spans) {
  std::string text;
  for (const auto& [begin, end] : spans) {
    text += (text.empty() ? "" : " ") + std::to_string(begin) + "-" + std::to_string(end);
  }
  return "[" + text + "]";
}

std::string TextOf(const std::string& text) {
  return JsonValue(text).ToText();
}

// Counts cases; a case fails once, whatever of it differs.
class Counter {
 public:
  explicit Counter(std::string subject) { field_.file = std::move(subject); }

  void Begin(std::string what) {
    what_ = std::move(what);
    failed_ = false;
    ++field_.checked;
  }
  template <class T>
  void Equal(const char* name, const T& given, const T& expected) {
    if (!(given == expected)) Fail(std::string(name) + " " + TextOf(given), TextOf(expected));
  }
  void Fail(const std::string& given, const std::string& expected) {
    if (!failed_) ++field_.failed;
    failed_ = true;
    if (field_.tensor.empty()) field_.tensor = what_ + ": " + given + " instead of " + expected;
  }
  VerifyReport Report() && {
    if (field_.failed == 0) field_.tensor = "texts";
    field_.error = static_cast<double>(field_.failed);
    field_.ratio = field_.failed == 0 ? 0 : std::numeric_limits<double>::infinity();
    VerifyReport report;
    report.checked = field_.checked;
    report.failed = field_.failed;
    report.worst = field_;
    report.files = {field_.file};
    report.fields = {std::move(field_)};
    return report;
  }

 private:
  VerifyField field_;
  std::string what_;
  bool failed_ = false;
};

// Calls visit for each line that is not empty.
void ForEachLine(const std::string& file, const std::function<void(const JsonValue&)>& visit) {
  const std::string text = ReadFile(file);
  for (size_t begin = 0, line = 1; begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) {
      visit(ParseJson(std::string_view(text).substr(begin, end - begin),
                      file + ": line " + std::to_string(line)));
    }
    begin = end + 1;
  }
}

std::string Streamed(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, bool skip) {
  StreamDecoder stream(tokenizer, skip);
  std::string text;
  for (const int32_t id : ids) text += stream.Add(id);
  return text + stream.Finish();
}

void CompareDecoded(const Tokenizer& tokenizer, const JsonValue& line,
                    const std::vector<int32_t>& ids, Counter& counter) {
  const JsonValue* decoded = line.Find("decoded");
  if (!decoded || !decoded->IsString()) return;
  counter.Equal("decoded", tokenizer.Decode(ids), decoded->AsString());
  counter.Equal("streamed", Streamed(tokenizer, ids, false), decoded->AsString());
  const JsonValue* skipped = line.Find("decoded_skip_special");
  if (!skipped || !skipped->IsString()) return;
  counter.Equal("decoded without special tokens", tokenizer.Decode(ids, true), skipped->AsString());
  counter.Equal("streamed without special tokens", Streamed(tokenizer, ids, true),
                skipped->AsString());
}

void CompareLine(const Tokenizer& tokenizer, const EncodeOptions& options, const JsonValue& line,
                 const std::string& file, Counter& counter) {
  const auto ids = IdsOf(Need(line, "ids", &JsonValue::IsArray, file), file);
  const JsonValue* text = line.Find("text");
  if (!text || !text->IsString()) {
    counter.Begin("ids " + TextOf(ids));
    return CompareDecoded(tokenizer, line, ids, counter);
  }
  counter.Begin("text " + text->ToText());
  const Encoding encoding = tokenizer.EncodeWithOffsets(text->AsString(), options);
  counter.Equal("ids", encoding.ids, ids);
  counter.Equal("ids without offsets", tokenizer.Encode(text->AsString(), options), ids);
  if (const JsonValue* special = line.Find("ids_with_special")) {
    EncodeOptions with = options;
    with.add_special = true;
    counter.Equal("ids with special tokens", tokenizer.Encode(text->AsString(), with),
                  special->IsArray() ? IdsOf(*special, file) : ids);
  }
  if (const JsonValue* spans = line.Find("offsets"); spans && spans->IsArray()) {
    counter.Equal("offsets", encoding.code_points, SpansOf(*spans, file));
  }
  if (const JsonValue* spans = line.Find("byte_offsets"); spans && spans->IsArray()) {
    counter.Equal("byte offsets", encoding.bytes, SpansOf(*spans, file));
  }
  CompareDecoded(tokenizer, line, ids, counter);
}

// Compares a rendering, or the error in its place, with {text} or {error, message}.
void CompareRendering(const std::function<RenderedChat()>& render, const JsonValue& expected,
                      const std::string& file, Counter& counter) {
  RenderedChat chat;
  std::string fault;
  try {
    chat = render();
  } catch (const Error& error) {
    fault = error.message();
  }
  if (const JsonValue* text = expected.Find("text"); text && text->IsString()) {
    if (!fault.empty()) return counter.Fail("error " + TextOf(fault), text->ToText());
    counter.Equal("text", chat.text, text->AsString());
  } else {
    const std::string& kind = Need(expected, "error", &JsonValue::IsString, file).AsString();
    if (fault.empty()) return counter.Fail("text " + TextOf(chat.text), "the error " + kind);
    // The one error whose words are the template's own.
    const JsonValue* message = expected.Find("message");
    if (kind == "TemplateError" && message && message->IsString() &&
        !fault.ends_with(message->AsString())) {
      counter.Fail("error " + TextOf(fault), message->ToText());
    }
  }
  if (const JsonValue* spans = expected.Find("assistant_spans"); spans && spans->IsArray()) {
    counter.Equal("assistant spans", chat.generation, SpansOf(*spans, file));
  }
}

}  // namespace

Tokenizer LoadAnyTokenizer(const std::string& path) {
  return IsGguf(path) ? Tokenizer::FromGguf(ReadGgufTokenizer(GgufFile(path)), path)
                      : Tokenizer::Load(path);
}

ChatTemplate LoadAnyTemplate(const std::string& path) {
  return IsGguf(path) ? ChatTemplate::FromGguf(ReadGgufTokenizer(GgufFile(path)), path)
                      : ChatTemplate::Load(path);
}

VerifyReport VerifyTokenizer(const std::string& path, const std::string& cases) {
  const Tokenizer tokenizer = LoadAnyTokenizer(path);
  // SentencePiece, which recorded these, takes the control tokens of a text for plain text.
  const bool sentence_piece = IsGguf(path) && ReadGgufTokenizer(GgufFile(path)).model == "llama";
  const EncodeOptions options = {.parse_special = !sentence_piece};
  std::vector<std::string> files = {cases};
  if (DirectoryExists(cases)) {
    files = {(Path(cases) / "cases.jsonl").string(), (Path(cases) / "decode_cases.jsonl").string()};
  }
  Counter counter(path);
  for (const std::string& file : files) {
    ForEachLine(
        file, [&](const JsonValue& line) { CompareLine(tokenizer, options, line, file, counter); });
  }
  return std::move(counter).Report();
}

VerifyReport VerifyTemplate(const std::string& path, const std::string& expected) {
  const ChatTemplate chat = LoadAnyTemplate(path);
  const Path folder = std::filesystem::absolute(expected).parent_path();
  const Path beside = folder / "conversations.json";
  const std::string file =
      (FileExists(beside.string()) ? beside : folder.parent_path() / "conversations.json").string();
  const JsonValue recorded = ReadJsonFile(expected), conversations = ReadJsonFile(file);
  const auto list = Need(conversations, "conversations", &JsonValue::IsArray, file).Items();
  Counter counter(path);
  for (const JsonValue& item : Need(recorded, "cases", &JsonValue::IsArray, expected).Items()) {
    int64_t index = -1;
    const bool found = Need(item, "conversation", &JsonValue::IsNumber, expected).GetInteger(index);
    if (!found || index < 0 || index >= std::ssize(list)) {
      throw Error(ErrorCode::kCorrupt, expected + ": a case names no conversation of " + file);
    }
    for (const auto& [kind, result] : item.Members()) {
      if (!result.IsObject()) continue;
      ChatOptions options;
      options.add_generation_prompt = kind == "with_generation_prompt" || kind == "with_tools";
      options.continue_final_message = kind == "continue_final_message";
      if (kind == "with_tools") {
        options.tools = Need(conversations, "tools", &JsonValue::IsArray, file);
      }
      counter.Begin("conversation " + std::to_string(index) + " " + kind);
      const JsonValue& messages = list[static_cast<size_t>(index)];
      CompareRendering([&] { return chat.Render(messages, options); }, result, expected, counter);
    }
  }
  return std::move(counter).Report();
}

VerifyReport VerifyTemplates(const std::string& file) {
  const JsonValue document = ReadJsonFile(file);
  Counter counter(file);
  const JsonValue shared = document.IsObject() ? document : JsonValue::MakeObject();
  const JsonValue* cases = document.IsArray() ? &document : document.Find("cases");
  if (!cases || !cases->IsArray()) throw Error(ErrorCode::kCorrupt, file + ": it has no cases");
  for (const JsonValue& item : cases->Items()) {
    const std::string& source = Need(item, "template", &JsonValue::IsString, file).AsString();
    const JsonValue* own = item.Find("variables");
    // {"ok": text} spells {"text": text}.
    JsonValue result = item;
    if (const JsonValue* expected = item.Find("expected")) {
      result = *expected;
      if (const JsonValue* text = expected->Find("ok")) result.Set("text", *text);
    }
    counter.Begin("template " + TextOf(source));
    CompareRendering(
        [&] {
          const ChatTemplate chat = ChatTemplate::FromText(source, file);
          return RenderedChat{chat.RenderWith(own && own->IsObject() ? *own : shared), {}};
        },
        result, file, counter);
  }
  return std::move(counter).Report();
}

VerifyReport VerifyTexts(const std::string& folder) {
  const Path root(folder);
  VerifyReport report;
  const auto folders = [&](const char* name) {
    const std::string path = (root / name).string();
    std::vector<Path> found;
    if (!DirectoryExists(path)) return found;
    for (const std::string& entry : ListDirectory(path)) {
      if (DirectoryExists((Path(path) / entry).string())) found.push_back(Path(path) / entry);
    }
    return found;
  };
  for (const Path& path : folders("tokenizers")) {
    if (!FileExists((path / "cases.jsonl").string())) continue;
    Merge(VerifyTokenizer(path.string(), path.string()), report);
  }
  const Path gguf = root / "gguf";
  constexpr std::string_view kBegin = "tokenizer_", kEnd = ".cases.jsonl";
  for (const std::string& name :
       DirectoryExists(gguf.string()) ? ListDirectory(gguf.string()) : std::vector<std::string>()) {
    if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) continue;
    const std::string model =
        name.substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size()) + "-f32.gguf";
    Merge(VerifyTokenizer((gguf / model).string(), (gguf / name).string()), report);
  }
  for (const Path& path : folders("chat_templates")) {
    const std::string expected = (path / "expected.json").string();
    if (FileExists(expected)) Merge(VerifyTemplate(path.string(), expected), report);
  }
  const std::string features = (root / "chat_templates" / "language_features.json").string();
  if (FileExists(features)) Merge(VerifyTemplates(features), report);
  return report;
}

}  // namespace weft
