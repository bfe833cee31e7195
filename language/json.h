// JSON documents as values: configs, indices and tokenizers are small enough to be held whole.
// Reading is strict (RFC 8259; no comments, no second value, no key twice, nesting up to 128) and
// takes memory in proportion to the text. Numbers keep their text, so none loses a digit.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace weft {

class JsonValue {
 public:
  using Member = std::pair<std::string, JsonValue>;

  JsonValue() = default;  // null
  explicit JsonValue(bool value) : value_(value) {}
  explicit JsonValue(int64_t value) : value_(Number{std::to_string(value)}) {}
  explicit JsonValue(int value) : JsonValue(int64_t{value}) {}
  // Shortest text that reads back to the same value, always with a point or an exponent.
  explicit JsonValue(double value);
  explicit JsonValue(float value);
  explicit JsonValue(std::string value) : value_(std::move(value)) {}
  explicit JsonValue(const char* value) : value_(std::string(value)) {}
  static JsonValue MakeArray(std::vector<JsonValue> items = {});
  static JsonValue MakeObject(std::vector<Member> members = {});  // keys differ

  bool IsNull() const { return std::holds_alternative<std::monostate>(value_); }
  bool IsBool() const { return std::holds_alternative<bool>(value_); }
  bool IsNumber() const { return std::holds_alternative<Number>(value_); }
  bool IsString() const { return std::holds_alternative<std::string>(value_); }
  bool IsArray() const { return std::holds_alternative<std::vector<JsonValue>>(value_); }
  bool IsObject() const { return std::holds_alternative<std::vector<Member>>(value_); }
  // "null", "a boolean", "a number", "a string", "an array" or "an object", for messages.
  std::string_view KindName() const;

  // Each needs a value of its kind.
  bool AsBool() const { return std::get<bool>(value_); }
  const std::string& AsString() const { return std::get<std::string>(value_); }
  std::string_view NumberText() const { return std::get<Number>(value_).text; }
  std::span<const JsonValue> Items() const { return std::get<std::vector<JsonValue>>(value_); }
  std::span<const Member> Members() const { return std::get<std::vector<Member>>(value_); }

  // False, leaving value alone, unless this is a number written without fraction or exponent that
  // fits, or one that a finite double holds.
  bool GetInteger(int64_t& value) const;
  bool GetDouble(double& value) const;

  // The member of an object, or null. Time grows with the members.
  const JsonValue* Find(std::string_view key) const;

  void Append(JsonValue item) {
    std::get<std::vector<JsonValue>>(value_).push_back(std::move(item));
  }
  // Replaces a member of that key in its place, or adds one behind the others.
  void Set(std::string_view key, JsonValue value);

  // indent 0: one line without spaces; else each item on a line of its own, as Python's json.dumps
  // with that indent. Non-ASCII stays as it is.
  std::string ToText(int indent = 0) const;

 private:
  struct Number {
    std::string text;
  };
  friend class JsonParser;
  void AppendText(int indent, int depth, std::string& out) const;

  std::variant<std::monostate, bool, Number, std::string, std::vector<JsonValue>,
               std::vector<Member>>
      value_;
};

// Throws Error(kCorrupt) that names the file and the byte.
JsonValue ParseJson(std::string_view text, std::string_view file);

// As ParseJson of a file of at most limit_bytes; Error(kIo) when it cannot be read.
JsonValue ReadJsonFile(const std::string& path, uint64_t limit_bytes = uint64_t{1} << 26);

}  // namespace weft
