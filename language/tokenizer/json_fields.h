// Members of an object of a tokenizer file, with errors that name their place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "language/json.h"

namespace weft {

class JsonFields {
 public:
  // place: "FILE: pre_tokenizer". Both are kept by reference or copied as they are cheap.
  JsonFields(const JsonValue& object, std::string place)
      : object_(&object), place_(std::move(place)) {
    if (!object.IsObject()) Fail("must be an object, not " + std::string(object.KindName()));
  }

  [[noreturn]] void Fail(const std::string& reason) const {
    throw Error(ErrorCode::kCorrupt, place_ + " " + reason);
  }
  [[noreturn]] void Fail(std::string_view key, const std::string& reason) const {
    throw Error(ErrorCode::kCorrupt, PlaceOf(key) + " " + reason);
  }
  std::string PlaceOf(std::string_view key) const {
    return place_ + (place_.ends_with(':') ? " " : ".") + std::string(key);
  }

  // Null for a member that is absent or null.
  const JsonValue* Find(std::string_view key) const {
    const JsonValue* value = object_->Find(key);
    return value && !value->IsNull() ? value : nullptr;
  }
  const JsonValue& Need(std::string_view key) const {
    const JsonValue* value = Find(key);
    if (!value) Fail(key, "is missing");
    return *value;
  }
  std::string String(std::string_view key) const { return AsString(key, Need(key)); }
  std::string String(std::string_view key, std::string fallback) const {
    const JsonValue* value = Find(key);
    return value ? AsString(key, *value) : std::move(fallback);
  }
  bool Bool(std::string_view key, bool fallback) const {
    const JsonValue* value = Find(key);
    if (!value) return fallback;
    if (!value->IsBool()) Fail(key, "must be true or false, not " + Kind(*value));
    return value->AsBool();
  }
  // Of [0, most].
  int64_t Integer(std::string_view key, int64_t most) const {
    return AsInteger(key, Need(key), most);
  }
  int64_t Integer(std::string_view key, int64_t most, int64_t fallback) const {
    const JsonValue* value = Find(key);
    return value ? AsInteger(key, *value, most) : fallback;
  }

 private:
  static std::string Kind(const JsonValue& value) { return std::string(value.KindName()); }
  std::string AsString(std::string_view key, const JsonValue& value) const {
    if (!value.IsString()) Fail(key, "must be a string, not " + Kind(value));
    return value.AsString();
  }
  int64_t AsInteger(std::string_view key, const JsonValue& value, int64_t most) const {
    int64_t integer = 0;
    if (!value.GetInteger(integer) || integer < 0 || integer > most) {
      Fail(key,
           "must be an integer from 0 to " + std::to_string(most) +
               (value.IsNumber() ? ", not " + std::string(value.NumberText().substr(0, 40)) : ""));
    }
    return integer;
  }

  const JsonValue* object_;
  std::string place_;
};

}  // namespace weft
