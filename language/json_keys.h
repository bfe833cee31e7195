// Typed members of a JSON object that was read from a file. What has another type or lies out of
// range is Error(kCorrupt) naming file and key; what is required and missing too. An explicit null
// counts as absent. Every key that was asked for is remembered, so the others can be named.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "language/json.h"

namespace weft {

class JsonKeys {
 public:
  // value outlives this and must be an object; prefix ("rope_scaling.") goes before keys in
  // messages.
  JsonKeys(const JsonValue& value, std::string file, std::string prefix = "");

  bool Has(std::string_view key);
  bool IsNull(std::string_view key);  // there, and null
  std::optional<int64_t> Integer(std::string_view key, int64_t least, int64_t most);
  int64_t RequiredInteger(std::string_view key, int64_t least, int64_t most);
  std::optional<double> Number(std::string_view key);  // finite
  std::optional<bool> Bool(std::string_view key);
  std::optional<std::string> String(std::string_view key);
  std::vector<std::string> Strings(std::string_view key);  // empty when absent
  std::vector<float> Floats(std::string_view key);         // the same
  // One number or an array of them.
  std::vector<int64_t> Integers(std::string_view key, int64_t least, int64_t most);
  std::string RequiredString(std::string_view key);
  // The member of any type, or null when absent or null.
  const JsonValue* Find(std::string_view key);
  const JsonValue& Required(std::string_view key);
  // A member that must be an object, and a value inside the member of that key.
  JsonKeys Object(std::string_view key) { return Member(key, Required(key)); }
  JsonKeys Member(std::string_view key, const JsonValue& value) const;

  // Keys that were not asked for and are not null.
  std::vector<std::string> Unread() const;
  // Error(kInvalidArgument), for what is well-formed and not supported: "FILE: KEY: reason".
  [[noreturn]] void Refuse(std::string_view key, const std::string& reason) const;
  // Error(kCorrupt).
  [[noreturn]] void Fail(std::string_view key, const std::string& reason) const;
  // "FILE: KEY", for errors from elsewhere.
  std::string PlaceOf(std::string_view key) const {
    return file_ + ": " + prefix_ + std::string(key);
  }
  const std::string& file() const { return file_; }

 private:
  [[noreturn]] void FailKind(std::string_view key, const char* kind, const JsonValue& value) const;

  const JsonValue& value_;
  std::string file_, prefix_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace weft
