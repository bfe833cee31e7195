#include "language/json_keys.h"

#include "base/check.h"

namespace weft {

JsonKeys::JsonKeys(const JsonValue& value, std::string file, std::string prefix)
    : value_(value), file_(std::move(file)), prefix_(std::move(prefix)) {
  if (!value.IsObject()) {
    const std::string what = prefix_.empty() ? "" : prefix_.substr(0, prefix_.size() - 1) + " ";
    throw Error(ErrorCode::kCorrupt,
                file_ + ": " + what + "must be an object, not " + std::string(value.KindName()));
  }
}

void JsonKeys::Refuse(std::string_view key, const std::string& reason) const {
  throw Error(ErrorCode::kInvalidArgument,
              file_ + ": " + prefix_ + std::string(key) + ": " + reason);
}

void JsonKeys::Fail(std::string_view key, const std::string& reason) const {
  throw Error(ErrorCode::kCorrupt, file_ + ": " + prefix_ + std::string(key) + " " + reason);
}

void JsonKeys::FailKind(std::string_view key, const char* kind, const JsonValue& value) const {
  const std::string text = value.IsNumber() ? std::string(value.NumberText().substr(0, 40))
                                            : std::string(value.KindName());
  Fail(key, std::string("must be ") + kind + ", not " + text);
}

const JsonValue* JsonKeys::Find(std::string_view key) {
  read_.emplace(key);
  const JsonValue* value = value_.Find(key);
  return value && !value->IsNull() ? value : nullptr;
}

const JsonValue& JsonKeys::Required(std::string_view key) {
  const JsonValue* value = Find(key);
  if (!value) Fail(key, "is missing");
  return *value;
}

std::string JsonKeys::RequiredString(std::string_view key) {
  const JsonValue& value = Required(key);
  if (!value.IsString()) FailKind(key, "a string", value);
  return value.AsString();
}

JsonKeys JsonKeys::Member(std::string_view key, const JsonValue& value) const {
  return JsonKeys(value, file_, prefix_ + std::string(key) + ".");
}

bool JsonKeys::Has(std::string_view key) {
  return Find(key) != nullptr;
}

bool JsonKeys::IsNull(std::string_view key) {
  read_.emplace(key);
  const JsonValue* value = value_.Find(key);
  return value && value->IsNull();
}

std::optional<int64_t> JsonKeys::Integer(std::string_view key, int64_t least, int64_t most) {
  const JsonValue* value = Find(key);
  if (!value) return std::nullopt;
  int64_t integer = 0;
  if (!value->GetInteger(integer)) FailKind(key, "a whole number", *value);
  if (integer < least || integer > most) {
    Fail(key, "is " + std::to_string(integer) + ", not from " + std::to_string(least) + " to " +
                  std::to_string(most));
  }
  return integer;
}

int64_t JsonKeys::RequiredInteger(std::string_view key, int64_t least, int64_t most) {
  const auto value = Integer(key, least, most);
  if (!value) Fail(key, "is missing");
  return *value;
}

std::optional<double> JsonKeys::Number(std::string_view key) {
  const JsonValue* value = Find(key);
  if (!value) return std::nullopt;
  double number = 0;
  if (!value->GetDouble(number)) FailKind(key, "a finite number", *value);
  return number;
}

std::optional<bool> JsonKeys::Bool(std::string_view key) {
  const JsonValue* value = Find(key);
  if (!value) return std::nullopt;
  if (!value->IsBool()) FailKind(key, "true or false", *value);
  return value->AsBool();
}

std::optional<std::string> JsonKeys::String(std::string_view key) {
  const JsonValue* value = Find(key);
  if (!value) return std::nullopt;
  if (!value->IsString()) FailKind(key, "a string", *value);
  return value->AsString();
}

std::vector<std::string> JsonKeys::Strings(std::string_view key) {
  std::vector<std::string> strings;
  const JsonValue* value = Find(key);
  if (!value) return strings;
  if (!value->IsArray()) FailKind(key, "an array of strings", *value);
  for (const JsonValue& item : value->Items()) {
    if (!item.IsString()) FailKind(key, "an array of strings", item);
    strings.push_back(item.AsString());
  }
  return strings;
}

std::vector<float> JsonKeys::Floats(std::string_view key) {
  std::vector<float> floats;
  const JsonValue* value = Find(key);
  if (!value) return floats;
  if (!value->IsArray()) FailKind(key, "an array of numbers", *value);
  for (const JsonValue& item : value->Items()) {
    double number = 0;
    if (!item.GetDouble(number)) FailKind(key, "an array of numbers", item);
    floats.push_back(static_cast<float>(number));
  }
  return floats;
}

std::vector<int64_t> JsonKeys::Integers(std::string_view key, int64_t least, int64_t most) {
  std::vector<int64_t> integers;
  const JsonValue* value = Find(key);
  if (!value) return integers;
  const auto add = [&](const JsonValue& item) {
    int64_t integer = 0;
    if (!item.GetInteger(integer) || integer < least || integer > most) {
      FailKind(key, "a whole number in range, or an array of them", item);
    }
    integers.push_back(integer);
  };
  if (value->IsArray()) {
    for (const JsonValue& item : value->Items()) add(item);
  } else {
    add(*value);
  }
  return integers;
}

std::vector<std::string> JsonKeys::Unread() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : value_.Members()) {
    if (!value.IsNull() && !read_.contains(key)) keys.push_back(key);
  }
  return keys;
}

}  // namespace weft
