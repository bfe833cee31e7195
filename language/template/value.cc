#include "language/template/value.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "language/json.h"
#include "language/unicode.h"

namespace weft::jinja {
namespace {

constexpr int kMaxDepth = 200;  // of nested values

int Deeper(int depth) {
  if (depth >= kMaxDepth) Raise("values are nested deeper than 200 levels");
  return depth + 1;
}

Value ParseNumber(std::string_view text) {
  if (text.find_first_of(".eE") != std::string_view::npos) {
    double number = 0;
    ParseJson(text, "number").GetDouble(number);
    return number;
  }
  const bool negative = text.starts_with('-');
  Integer value = 0;
  for (const char digit : text.substr(negative ? 1 : 0)) {
    if (__builtin_mul_overflow(value, Integer{10}, &value) ||
        __builtin_add_overflow(value, Integer{digit - '0'}, &value)) {
      Raise("the integer " + std::string(text.substr(0, 60)) + " is too large");
    }
  }
  return negative ? -value : value;
}

std::string QuotedText(const std::string& text) {
  const bool single = text.find('\'') == std::string::npos || text.find('"') != std::string::npos;
  const char32_t quote = single ? '\'' : '"';
  std::string out(1, static_cast<char>(quote));
  char escape[16];
  for (const char32_t code : ToCodePoints(text)) {
    if (code == quote || code == '\\') {
      out += '\\';
      out += static_cast<char>(code);
    } else if (code == '\n') {
      out += "\\n";
    } else if (code == '\r') {
      out += "\\r";
    } else if (code == '\t') {
      out += "\\t";
    } else if (IsPrintable(code)) {
      AppendCodePoint(code, out);
    } else {
      const char* format = code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x";
      std::snprintf(escape, sizeof(escape), format, static_cast<unsigned>(code));
      out += escape;
    }
  }
  return out += static_cast<char>(quote);
}

void AppendRepr(const Value& value, Budget& budget, std::string& out) {
  budget.TakeSteps(1);
  const size_t before = out.size();
  if (const auto* text = value.text()) {
    budget.TakeSteps(text->size() / 16);
    out += QuotedText(*text);
  } else if (const auto* items = value.items()) {
    out += value.IsTuple() ? '(' : '[';
    for (size_t i = 0; i < items->size(); ++i) {
      if (i > 0) out += ", ";
      AppendRepr((*items)[i], budget, out);
    }
    if (value.IsTuple() && items->size() == 1) out += ',';
    out += value.IsTuple() ? ')' : ']';
    return;
  } else if (const auto* members = value.members()) {
    out += '{';
    for (size_t i = 0; i < members->size(); ++i) {
      if (i > 0) out += ", ";
      AppendRepr((*members)[i].first, budget, out);
      out += ": ";
      AppendRepr((*members)[i].second, budget, out);
    }
    out += '}';
    return;
  } else if (value.IsNone()) {
    out += "None";
  } else if (const auto* boolean = value.As<bool>()) {
    out += *boolean ? "True" : "False";
  } else if (const auto* integer = value.As<Integer>()) {
    out += IntegerText(*integer);
  } else if (const auto* number = value.As<double>()) {
    out += FloatText(*number);
  } else {
    out += value.IsUndefined() ? "Undefined" : std::string("<") + value.TypeName() + ">";
  }
  budget.TakeBytes(out.size() - before);
}

}  // namespace

void Raise(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

Undefined Missing(std::string message) {
  return {std::make_shared<const std::string>(std::move(message))};
}

void CheckDefined(const Value& value) {
  if (const auto* undefined = value.As<Undefined>()) Raise(*undefined->message);
}

void CheckHashable(const Value& key) {
  if (key.members() || (key.items() && !key.IsTuple())) {
    Raise(std::string("unhashable type: '") + key.TypeName() + "'");
  }
}

void Budget::TakeSteps(uint64_t steps) {
  if (steps > steps_) Raise("the template takes too many steps");
  steps_ -= steps;
}

void Budget::TakeBytes(uint64_t bytes) {
  if (bytes > bytes_) Raise("the template makes too much text");
  bytes_ -= bytes;
}

Value::Value(List items, bool tuple) {
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.Depth());
  data_ = ListRef{std::make_shared<const List>(std::move(items)), tuple, Deeper(depth)};
}

Value::Value(Dict members) {
  int depth = 0;
  for (const auto& [key, value] : members) {
    depth = std::max({depth, key.Depth(), value.Depth()});
  }
  data_ = DictRef{std::make_shared<const Dict>(std::move(members)), Deeper(depth)};
}

int Value::Depth() const {
  if (const auto* list = As<ListRef>()) return list->depth;
  if (const auto* dict = As<DictRef>()) return dict->depth;
  return callable() ? callable()->depth : 0;
}

Value MakeCallable(Callable callable) {
  int depth = callable.self.Depth();
  for (const auto& [symbol, value] : callable.captured) depth = std::max(depth, value.Depth());
  callable.depth = Deeper(depth);
  return std::make_shared<const Callable>(std::move(callable));
}

std::vector<const Value*> Bind(const Arguments& arguments, std::string_view what,
                               std::initializer_list<std::string_view> parameters) {
  std::vector<const Value*> bound(parameters.size(), nullptr);
  if (arguments.positional.size() > parameters.size()) {
    Raise(std::string(what) + " takes at most " + std::to_string(parameters.size()) +
          " arguments, not " + std::to_string(arguments.positional.size()));
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) bound[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.keywords) {
    const auto found = std::ranges::find(parameters, name);
    const auto index = static_cast<size_t>(found - parameters.begin());
    if (found == parameters.end() || bound[index]) {
      Raise(std::string(what) + " has no argument '" + name + "', or has it twice");
    }
    bound[index] = &value;
  }
  return bound;
}

Value Value::FromJson(const JsonValue& json) {
  if (json.IsNull()) return {};
  if (json.IsBool()) return json.AsBool();
  if (json.IsNumber()) return ParseNumber(json.NumberText());
  if (json.IsString()) return json.AsString();
  if (json.IsArray()) {
    List items;
    items.reserve(json.Items().size());
    for (const JsonValue& item : json.Items()) items.push_back(FromJson(item));
    return items;
  }
  Dict members;
  members.reserve(json.Members().size());
  for (const auto& [key, value] : json.Members()) members.emplace_back(key, FromJson(value));
  return members;
}

bool Value::GetInteger(Integer& value) const {
  if (const auto* boolean = As<bool>()) {
    value = *boolean;
  } else if (const auto* integer = As<Integer>()) {
    value = *integer;
  } else {
    return false;
  }
  return true;
}

bool Value::GetNumber(double& value) const {
  Integer integer = 0;
  if (const auto* number = As<double>()) {
    value = *number;
  } else if (GetInteger(integer)) {
    value = static_cast<double>(integer);
  } else {
    return false;
  }
  return true;
}

bool Value::Truthy() const {
  if (const auto* held = text()) return !held->empty();
  if (const auto* held = items()) return !held->empty();
  if (const auto* held = members()) return !held->empty();
  double number = 0;
  if (GetNumber(number)) return number != 0;
  return !IsNone() && !IsUndefined();
}

const char* Value::TypeName() const {
  constexpr const char* kNames[] = {"NoneType",  "Undefined",   "bool",    "int",
                                    "float",     "str",         "list",    "dict",
                                    "Namespace", "LoopContext", "function"};
  return IsTuple() ? "tuple" : kNames[data_.index()];
}

bool Equal(const Value& a, const Value& b, Budget& budget) {
  budget.TakeSteps(1);
  Integer left = 0, right = 0;
  if (a.GetInteger(left) && b.GetInteger(right)) return left == right;
  double x = 0, y = 0;
  if (a.GetNumber(x) && b.GetNumber(y)) return x == y;
  if (a.text() && b.text()) return *a.text() == *b.text();
  if (a.IsNone()) return b.IsNone();
  if (a.IsUndefined()) return b.IsUndefined();
  if (a.items() && b.items()) {
    return a.IsTuple() == b.IsTuple() &&
           std::ranges::equal(*a.items(), *b.items(),
                              [&](const Value& p, const Value& q) { return Equal(p, q, budget); });
  }
  if (a.members() && b.members()) {
    if (a.members()->size() != b.members()->size()) return false;
    return std::ranges::all_of(*a.members(), [&](const auto& member) {
      const Value* other = FindMember(*b.members(), member.first, budget);
      return other && Equal(member.second, *other, budget);
    });
  }
  return (a.name_space() && a.name_space() == b.name_space()) ||
         (a.loop() && a.loop() == b.loop()) || (a.callable() && a.callable() == b.callable());
}

const Value* FindMember(const Dict& dict, const Value& key, Budget& budget) {
  budget.TakeSteps(dict.size() / 8);
  if (const auto* text = key.text()) return FindMember(dict, std::string_view(*text));
  const auto found = std::ranges::find_if(
      dict, [&](const auto& member) { return Equal(member.first, key, budget); });
  return found == dict.end() ? nullptr : &found->second;
}

const Value* FindMember(const Dict& dict, std::string_view key) {
  for (const auto& [name, value] : dict) {
    if (name.text() && *name.text() == key) return &value;
  }
  return nullptr;
}

void SetMember(Dict& dict, Value key, Value value, Budget& budget) {
  CheckHashable(key);
  const Value* found = FindMember(dict, key, budget);
  if (found) {
    const_cast<Value&>(*found) = std::move(value);
  } else {
    dict.emplace_back(std::move(key), std::move(value));
  }
}

std::string IntegerText(Integer value) {
  std::string digits;
  __extension__ unsigned __int128 rest =
      value < 0 ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  do {
    digits += static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
  } while (rest > 0);
  if (value < 0) digits += '-';
  std::ranges::reverse(digits);
  return digits;
}

std::string FloatText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return JsonValue(value).ToText();
}

std::string Repr(const Value& value, Budget& budget) {
  std::string out;
  AppendRepr(value, budget, out);
  return out;
}

std::string Text(const Value& value, Budget& budget) {
  if (const auto* text = value.text()) return *text;
  return value.IsUndefined() ? std::string() : Repr(value, budget);
}

}  // namespace weft::jinja
