#include "rlhf/dataset.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "rlhf/parquet_rows.h"

namespace weft {
namespace {

constexpr std::array<const char*, 8> kColumns = {"text",   "messages", "prompt", "completion",
                                                 "chosen", "rejected", "label",  "margin"};
constexpr std::string_view kHuman = "\n\nHuman:", kAssistant = "\n\nAssistant:";

class RowReader {
 public:
  RowReader(std::string_view line, const std::string& place)
      : json_(ParseJson(line, place)), place_(place) {
    if (!json_.IsObject()) Fail("a row is an object, not " + std::string(json_.KindName()));
    for (const auto& [key, value] : json_.Members()) {
      std::string lower = key;
      std::ranges::transform(lower, lower.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
      });
      if (lower != key && std::ranges::find(kColumns, lower) != kColumns.end()) {
        Fail("\"" + key + "\" must be written \"" + lower + "\"");
      }
    }
  }

  DataRow Read() {
    DataRow row{.place = place_};
    if (Has("chosen") || Has("rejected")) {
      ReadPair(row);
    } else if (Has("messages")) {
      row.kind = RowKind::kChat;
      row.messages = Messages("messages");
      const auto speaks = [](const JsonValue& message) {
        return message.Find("role")->AsString() == "assistant";
      };
      if (!std::ranges::any_of(row.messages.Items(), speaks)) {
        Fail("no message of the assistant: there is nothing to learn");
      }
    } else if (Has("completion")) {
      row.kind = Has("label") ? RowKind::kVerdict : RowKind::kCompletion;
      row.prompt = Words("prompt");
      row.chosen = Words("completion");
      CheckAlike(row.prompt, row.chosen, "prompt", "completion");
      CheckAnswer(row.chosen, "completion");
      if (row.kind == RowKind::kVerdict) {
        const JsonValue& label = *json_.Find("label");
        if (!label.IsBool()) {
          Fail("label must be true or false, not " + std::string(label.KindName()));
        }
        row.label = label.AsBool();
      }
    } else if (Has("text")) {
      row.text = Text("text");
      if (row.text.empty()) Fail("text is empty");
    } else if (Has("prompt")) {
      row.kind = RowKind::kPrompt;
      row.prompt = Words("prompt");
    } else {
      Fail(
          "no columns to learn from: text, prompt, messages, prompt and completion, or chosen and "
          "rejected");
    }
    return row;
  }

 private:
  [[noreturn]] void Fail(const std::string& reason) const {
    throw Error(ErrorCode::kCorrupt, place_ + ": " + reason);
  }
  bool Has(std::string_view column) const { return json_.Find(column) != nullptr; }
  const JsonValue& At(std::string_view column) const {
    const JsonValue* value = json_.Find(column);
    if (value == nullptr) Fail("the column " + std::string(column) + " is missing");
    return *value;
  }
  std::string Text(std::string_view column) const {
    const JsonValue& value = At(column);
    if (!value.IsString()) {
      Fail(std::string(column) + " must be a text, not " + std::string(value.KindName()));
    }
    return value.AsString();
  }

  JsonValue Messages(std::string_view column) const {
    const JsonValue& value = At(column);
    if (!value.IsArray()) {
      Fail(std::string(column) + " must be a list of messages, not " +
           std::string(value.KindName()));
    }
    if (value.Items().empty()) Fail(std::string(column) + " has no messages");
    for (size_t i = 0; i < value.Items().size(); ++i) {
      const JsonValue& message = value.Items()[i];
      for (const char* key : {"role", "content"}) {
        const JsonValue* member = message.IsObject() ? message.Find(key) : nullptr;
        if (member == nullptr || !member->IsString()) {
          Fail("message " + std::to_string(i) + " of " + std::string(column) +
               " needs the texts role and content");
        }
      }
    }
    return value;
  }

  // A text or messages.
  JsonValue Words(std::string_view column) const {
    const JsonValue& value = At(column);
    if (value.IsString()) return value;
    if (value.IsArray()) return Messages(column);
    Fail(std::string(column) + " must be a text or a list of messages, not " +
         std::string(value.KindName()));
  }
  void CheckAlike(const JsonValue& a, const JsonValue& b, std::string_view a_name,
                  std::string_view b_name) const {
    if (a.IsArray() != b.IsArray()) {
      Fail(std::string(a_name) + " and " + std::string(b_name) +
           " must both be texts or both be messages");
    }
  }
  void CheckAnswer(const JsonValue& answer, std::string_view column) const {
    const JsonValue* words = &answer;
    if (answer.IsArray()) {
      if (answer.Items().empty()) Fail(std::string(column) + " says nothing");
      words = answer.Items().back().Find("content");
    }
    if (words->AsString().find_first_not_of(" \t\r\n\v\f") == std::string::npos) {
      Fail(std::string(column) + " is empty: an answer has a word at least");
    }
  }

  void ReadPair(DataRow& row) const {
    row.kind = RowKind::kPair;
    row.chosen = Words("chosen");
    row.rejected = Words("rejected");
    CheckAlike(row.chosen, row.rejected, "chosen", "rejected");
    if (row.chosen.ToText() == row.rejected.ToText()) {
      Fail("chosen equals rejected: there is nothing to learn");
    }
    if (Has("prompt")) {
      row.prompt = Words("prompt");
      CheckAlike(row.prompt, row.chosen, "prompt", "chosen");
    } else if (row.chosen.IsArray()) {
      ShareMessages(row);
    } else {
      ShareText(row);
    }
    CheckAnswer(row.chosen, "chosen");
    CheckAnswer(row.rejected, "rejected");
    if (Has("margin") && !At("margin").GetDouble(row.margin)) Fail("margin must be a number");
  }

  void ShareMessages(DataRow& row) const {
    const auto c = row.chosen.Items(), r = row.rejected.Items();
    size_t shared = 0;
    while (shared < std::min(c.size(), r.size()) && c[shared].ToText() == r[shared].ToText()) {
      ++shared;
    }
    if (shared == 0) Fail("chosen and rejected share no message: give the prompt in a column");
    row.prompt = JsonValue::MakeArray({c.begin(), c.begin() + static_cast<std::ptrdiff_t>(shared)});
    JsonValue chosen =
        JsonValue::MakeArray({c.begin() + static_cast<std::ptrdiff_t>(shared), c.end()});
    JsonValue rejected =
        JsonValue::MakeArray({r.begin() + static_cast<std::ptrdiff_t>(shared), r.end()});
    row.chosen = std::move(chosen);
    row.rejected = std::move(rejected);
  }

  void ShareText(DataRow& row) const {
    const std::string c = row.chosen.AsString(), r = row.rejected.AsString();
    size_t shared = std::ranges::mismatch(c, r).in1 - c.begin();
    if (c.starts_with(kHuman) && r.starts_with(kHuman)) return SharePlainChat(row, c, r, shared);
    // A word is not cut from the space before it (as TRL's extract_prompt).
    if (shared > 0 && c[shared - 1] == ' ') --shared;
    while (shared > 0 && shared < c.size() && (c[shared] & 0xC0) == 0x80) --shared;
    row.prompt = JsonValue(c.substr(0, shared));
    row.chosen = JsonValue(c.substr(shared));
    row.rejected = JsonValue(r.substr(shared));
  }

  void SharePlainChat(DataRow& row, const std::string& c, const std::string& r,
                      size_t shared) const {
    const size_t last = c.substr(0, shared).rfind(kAssistant);
    if (last == std::string::npos) Fail("chosen and rejected share no \"\\n\\nAssistant:\"");
    const size_t end = last + kAssistant.size();
    row.prompt = PlainMessages(c.substr(0, last));
    row.chosen = PlainMessages(std::string(kAssistant) + c.substr(end));
    row.rejected = PlainMessages(std::string(kAssistant) + r.substr(end));
  }

  // "\n\nHuman: Hi\n\nAssistant: Hello" as messages, each without white space around it.
  JsonValue PlainMessages(std::string_view text) const {
    JsonValue messages = JsonValue::MakeArray();
    while (!text.empty()) {
      const bool human = text.starts_with(kHuman);
      text.remove_prefix(human ? kHuman.size() : kAssistant.size());
      const size_t end = std::min({text.size(), text.find(kHuman), text.find(kAssistant)});
      std::string_view words = text.substr(0, end);
      const size_t first = words.find_first_not_of(" \t\r\n");
      words = first == std::string_view::npos ? "" : words.substr(first);
      words = words.substr(0, words.find_last_not_of(" \t\r\n") + 1);
      messages.Append(JsonValue::MakeObject({{"role", JsonValue(human ? "user" : "assistant")},
                                             {"content", JsonValue(std::string(words))}}));
      text.remove_prefix(end);
    }
    return messages;
  }

  const JsonValue json_;
  const std::string place_;
};

bool IsBlank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

std::string_view Name(RowKind kind) {
  switch (kind) {
    case RowKind::kText:
      return "a text";
    case RowKind::kPrompt:
      return "a prompt without an answer";
    case RowKind::kChat:
      return "a chat (messages)";
    case RowKind::kCompletion:
      return "an answer (prompt, completion)";
    case RowKind::kVerdict:
      return "a verdict (prompt, completion, label)";
    case RowKind::kPair:
      return "a pair (chosen, rejected)";
  }
  return "";
}

DataRow ParseRow(std::string_view line, const std::string& place) {
  return RowReader(line, place).Read();
}

Dataset::Dataset(const std::string& path, const DatasetOptions& options)
    : path_(path), file_(std::make_unique<MappedFile>(path)) {
  checksum_ = Crc32c(file_->bytes());
  if (IsParquet(file_->bytes())) file_ = ParquetAsJsonLines(path, file_->bytes(), kColumns);
  const auto bytes = file_->bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    Line line{.begin = begin, .end = end, .number = ++number, .kind = RowKind::kText};
    begin = end + 1;
    if (IsBlank(Text(line))) continue;
    try {
      const std::string place = path_ + ":" + std::to_string(number);
      if (static_cast<int64_t>(line.end - line.begin) > options.max_line_bytes) {
        throw Error(ErrorCode::kCorrupt,
                    place + ": longer than " + std::to_string(options.max_line_bytes) + " bytes");
      }
      line.kind = ParseRow(Text(line), place).kind;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCorrupt || !options.skip_bad_lines) throw;
      if (skipped_++ == 0) first_fault_ = error.message();
      continue;
    }
    lines_.push_back(line);
  }
  if (lines_.empty()) {
    throw Error(ErrorCode::kCorrupt,
                path_ + ": no rows" + (skipped_ > 0 ? "; the first fault is " + first_fault_ : ""));
  }
}

std::string_view Dataset::Text(const Line& line) const {
  return {reinterpret_cast<const char*>(file_->bytes().data()) + line.begin, line.end - line.begin};
}

DataRow Dataset::Row(int64_t row) const {
  const Line& line = lines_[row];
  return ParseRow(Text(line), path_ + ":" + std::to_string(line.number));
}

}  // namespace weft
