#include "language/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/check.h"
#include "base/file.h"
#include "nn/json_cursor.h"

namespace weft {
namespace {

constexpr int kMaxDepth = 128;
constexpr size_t kMaxStringBytes = size_t{1} << 26;

template <class T>
std::string FloatText(T value) {
  WEFT_CHECK(std::isfinite(value)) << "JSON has no text for what is not finite";
  char text[64];
  const T magnitude = std::abs(value);  // where Python's repr changes to an exponent
  const bool fixed = magnitude == 0 || (magnitude >= T(1e-4) && magnitude < T(1e16));
  const auto format = fixed ? std::chars_format::fixed : std::chars_format::scientific;
  const char* end = std::to_chars(text, text + sizeof(text), value, format).ptr;
  std::string out(text, static_cast<size_t>(end - text));
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

}  // namespace

class JsonParser {
 public:
  JsonParser(std::string_view text, std::string_view file)
      : cursor_({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, file, 0) {}

  JsonValue Document() {
    JsonValue value = Value(0);
    if (!cursor_.AtEnd()) cursor_.Fail("text after the value");
    return value;
  }

 private:
  JsonValue Value(int depth) {
    if (depth > kMaxDepth) {
      cursor_.Fail("nested deeper than " + std::to_string(kMaxDepth) + " levels");
    }
    JsonValue value;
    switch (cursor_.Peek()) {
      case '{':
        value.value_ = Object(depth);
        break;
      case '[':
        value.value_ = Array(depth);
        break;
      case '"':
        value.value_ = cursor_.String("a string", kMaxStringBytes);
        break;
      case 't':
      case 'f':
      case 'n':
        if (cursor_.TakeWord("true")) {
          value.value_ = true;
        } else if (cursor_.TakeWord("false")) {
          value.value_ = false;
        } else if (!cursor_.TakeWord("null")) {
          cursor_.Fail("expected a value");
        }
        break;
      default:
        value.value_ = JsonValue::Number{std::string(cursor_.Number("a value"))};
    }
    return value;
  }

  std::vector<JsonValue> Array(int depth) {
    std::vector<JsonValue> items;
    cursor_.Expect('[', "to begin an array");
    if (cursor_.Take(']')) return items;
    do {
      items.push_back(Value(depth + 1));
    } while (cursor_.Take(','));
    cursor_.Expect(']', "or ',' after an item");
    return items;
  }

  std::vector<JsonValue::Member> Object(int depth) {
    std::vector<JsonValue::Member> members;
    cursor_.Expect('{', "to begin an object");
    if (cursor_.Take('}')) return members;
    do {
      std::string key = cursor_.String("a key", kMaxStringBytes);
      cursor_.Expect(':', "after a key");
      members.emplace_back(std::move(key), Value(depth + 1));
    } while (cursor_.Take(','));
    cursor_.Expect('}', "or ',' after a member");
    CheckKeys(members);
    return members;
  }

  void CheckKeys(const std::vector<JsonValue::Member>& members) const {
    std::vector<std::string_view> keys;
    keys.reserve(members.size());
    for (const auto& member : members) keys.push_back(member.first);
    std::ranges::sort(keys);
    const auto twice = std::ranges::adjacent_find(keys);
    if (twice != keys.end()) {
      cursor_.Fail("the object before has the key \"" + std::string(twice->substr(0, 200)) +
                   "\" twice");
    }
  }

  JsonCursor cursor_;
};

JsonValue::JsonValue(double value) : value_(Number{FloatText(value)}) {}
JsonValue::JsonValue(float value) : value_(Number{FloatText(value)}) {}

JsonValue JsonValue::MakeArray(std::vector<JsonValue> items) {
  JsonValue value;
  value.value_ = std::move(items);
  return value;
}

JsonValue JsonValue::MakeObject(std::vector<Member> members) {
  JsonValue value;
  value.value_ = std::move(members);
  return value;
}

std::string_view JsonValue::KindName() const {
  constexpr std::string_view kNames[] = {"null",     "a boolean", "a number",
                                         "a string", "an array",  "an object"};
  return kNames[value_.index()];
}

bool JsonValue::GetInteger(int64_t& value) const {
  if (!IsNumber()) return false;
  const std::string_view text = NumberText();
  int64_t parsed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  value = parsed;
  return true;
}

bool JsonValue::GetDouble(double& value) const {
  if (!IsNumber()) return false;
  const std::string_view text = NumberText();
  double parsed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  value = parsed;
  return true;
}

const JsonValue* JsonValue::Find(std::string_view key) const {
  if (!IsObject()) return nullptr;
  for (const Member& member : Members()) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

void JsonValue::Set(std::string_view key, JsonValue value) {
  auto& members = std::get<std::vector<Member>>(value_);
  for (Member& member : members) {
    if (member.first == key) {
      member.second = std::move(value);
      return;
    }
  }
  members.emplace_back(std::string(key), std::move(value));
}

std::string JsonValue::ToText(int indent) const {
  std::string out;
  AppendText(indent, 0, out);
  return out;
}

void JsonValue::AppendText(int indent, int depth, std::string& out) const {
  if (IsNull()) {
    out += "null";
  } else if (IsBool()) {
    out += AsBool() ? "true" : "false";
  } else if (IsNumber()) {
    out += NumberText();
  } else if (IsString()) {
    AppendJsonQuoted(AsString(), out);
  } else {
    const bool array = IsArray();
    const size_t count = array ? Items().size() : Members().size();
    out += array ? '[' : '{';
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) out += ',';
      if (indent > 0) out.append(1, '\n').append(static_cast<size_t>(indent * (depth + 1)), ' ');
      if (array) {
        Items()[i].AppendText(indent, depth + 1, out);
      } else {
        AppendJsonQuoted(Members()[i].first, out);
        out += indent > 0 ? ": " : ":";
        Members()[i].second.AppendText(indent, depth + 1, out);
      }
    }
    if (indent > 0 && count > 0)
      out.append(1, '\n').append(static_cast<size_t>(indent * depth), ' ');
    out += array ? ']' : '}';
  }
}

JsonValue ParseJson(std::string_view text, std::string_view file) {
  return JsonParser(text, file).Document();
}

JsonValue ReadJsonFile(const std::string& path, uint64_t limit_bytes) {
  return ParseJson(ReadFile(path, limit_bytes), path);
}

}  // namespace weft
