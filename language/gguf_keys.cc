#include "language/gguf_keys.h"

#include <cmath>

#include "base/check.h"

namespace weft {

void GgufKeys::Fail(std::string_view key, const std::string& reason) const {
  throw Error(ErrorCode::kCorrupt, file_.name() + ": " + std::string(key) + " " + reason);
}

// get fills a T from the value, or returns false when it is of another kind.
template <class T, class Get>
std::optional<T> GgufKeys::Value(std::string_view key, const char* kind, Get get) const {
  const GgufValue* value = file_.Find(key);
  if (!value) return std::nullopt;
  T result{};
  if (!get(*value, result)) {
    Fail(key, std::string("must be ") + kind + ", not " + value->KindName());
  }
  return result;
}

std::optional<int64_t> GgufKeys::Integer(std::string_view key, int64_t least, int64_t most) const {
  const auto value = Value<int64_t>(
      key, "a whole number", [](const GgufValue& v, int64_t& out) { return v.GetInteger(out); });
  if (value && (*value < least || *value > most)) {
    Fail(key, "is " + std::to_string(*value) + ", not from " + std::to_string(least) + " to " +
                  std::to_string(most));
  }
  return value;
}

int64_t GgufKeys::RequiredInteger(std::string_view key, int64_t least, int64_t most) const {
  const auto value = Integer(key, least, most);
  if (!value) Fail(key, "is missing");
  return *value;
}

std::optional<double> GgufKeys::Number(std::string_view key) const {
  const auto value = Value<double>(
      key, "a number", [](const GgufValue& v, double& out) { return v.GetDouble(out); });
  if (value && !std::isfinite(*value)) Fail(key, "is not finite");
  return value;
}

std::optional<bool> GgufKeys::Bool(std::string_view key) const {
  return Value<bool>(key, "a bool", [](const GgufValue& v, bool& out) { return v.GetBool(out); });
}

std::optional<std::string> GgufKeys::String(std::string_view key) const {
  const auto view = Value<std::string_view>(
      key, "a string", [](const GgufValue& v, std::string_view& out) { return v.GetString(out); });
  return view ? std::optional<std::string>(*view) : std::nullopt;
}

std::vector<std::string> GgufKeys::Strings(std::string_view key) const {
  using Strings = std::vector<std::string>;
  return Value<Strings>(key, "an array of strings",
                        [](const GgufValue& v, Strings& out) { return v.GetStrings(out); })
      .value_or(Strings());
}

std::vector<int64_t> GgufKeys::Integers(std::string_view key) const {
  using Integers = std::vector<int64_t>;
  return Value<Integers>(key, "an array of whole numbers",
                         [](const GgufValue& v, Integers& out) { return v.GetIntegers(out); })
      .value_or(Integers());
}

std::vector<float> GgufKeys::Floats(std::string_view key) const {
  using Floats = std::vector<float>;
  return Value<Floats>(key, "an array of f32",
                       [](const GgufValue& v, Floats& out) { return v.GetFloats(out); })
      .value_or(Floats());
}

}  // namespace weft
