// Python's operators on the values of templates.
#include <algorithm>
#include <cmath>
#include <compare>

#include "language/template/interpreter.h"
#include "language/unicode.h"

namespace weft::jinja {
namespace {

[[noreturn]] void Unsupported(std::string_view sign, const Value& left, const Value& right) {
  if (sign == "+" && left.text()) {
    Raise(std::string("can only concatenate str (not \"") + right.TypeName() + "\") to str");
  }
  Raise("unsupported operand type(s) for " + std::string(sign) + ": '" + left.TypeName() +
        "' and '" + right.TypeName() + "'");
}

[[noreturn]] void TooLarge() {
  Raise("an integer gets too large");
}

Value IntegerPower(Integer base, Integer exponent) {
  Integer result = 1;
  while (exponent > 0) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) TooLarge();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) TooLarge();
  }
  return result;
}

Value OperateIntegers(std::string_view sign, Integer left, Integer right) {
  Integer result = 0;
  if (sign == "+") {
    if (__builtin_add_overflow(left, right, &result)) TooLarge();
    return result;
  }
  if (sign == "-") {
    if (__builtin_sub_overflow(left, right, &result)) TooLarge();
    return result;
  }
  if (sign == "*") {
    if (__builtin_mul_overflow(left, right, &result)) TooLarge();
    return result;
  }
  if (sign == "**") {
    if (right >= 0) return IntegerPower(left, right);
    if (left == 0) Raise("0.0 cannot be raised to a negative power");
    return std::pow(static_cast<double>(left), static_cast<double>(right));
  }
  if (right == 0) {
    Raise(sign == "/" ? "division by zero" : "integer division or modulo by zero");
  }
  // One rounding, as long as both fit the 64 bits of its mantissa.
  if (sign == "/") {
    return static_cast<double>(static_cast<long double>(left) / static_cast<long double>(right));
  }
  if (right == -1) {  // the least integer has no opposite
    if (sign == "%") return Integer{0};
    return OperateIntegers("-", 0, left);
  }
  const Integer remainder = left % right;
  const bool below = remainder != 0 && (remainder < 0) != (right < 0);
  if (sign == "%") return below ? remainder + right : remainder;
  return left / right - (below ? 1 : 0);
}

Value OperateFloats(std::string_view sign, double left, double right) {
  if (sign == "+") return left + right;
  if (sign == "-") return left - right;
  if (sign == "*") return left * right;
  if (sign == "**") {
    if (left == 0 && right < 0) Raise("0.0 cannot be raised to a negative power");
    const double result = std::pow(left, right);
    if (!std::isfinite(result) && std::isfinite(left) && std::isfinite(right)) {
      Raise("Numerical result out of range");
    }
    return result;
  }
  if (right == 0) Raise(sign == "%" ? "float modulo" : "float division by zero");
  if (sign == "/") return left / right;
  double remainder = std::fmod(left, right);
  if (remainder != 0 && (remainder < 0) != (right < 0)) remainder += right;
  return sign == "%" ? remainder : std::floor((left - remainder) / right + 0.5);
}

// A text or list several times over.
Value Repeat(Interpreter& interpreter, const Value& value, Integer times) {
  times = std::max<Integer>(times, 0);
  const size_t size = value.text() ? value.text()->size() : value.items()->size();
  const size_t unit = value.text() ? 1 : sizeof(Value);
  Integer bytes = 0;
  if (__builtin_mul_overflow(times, static_cast<Integer>(size * unit), &bytes) ||
      bytes > static_cast<Integer>(interpreter.budget().bytes())) {
    Raise("the template makes too much text");
  }
  if (size == 0) times = 0;
  if (const auto* text = value.text()) {
    std::string out;
    out.reserve(size * static_cast<size_t>(times));
    for (Integer i = 0; i < times; ++i) out += *text;
    return interpreter.NewText(std::move(out));
  }
  List out;
  for (Integer i = 0; i < times; ++i) {
    out.insert(out.end(), value.items()->begin(), value.items()->end());
  }
  return interpreter.NewList(std::move(out), value.IsTuple());
}

}  // namespace

Value Operate(Interpreter& interpreter, std::string_view sign, const Value& left,
              const Value& right) {
  CheckDefined(left);
  if (sign == "%" && left.text()) {
    return interpreter.NewText(FormatPercent(interpreter, *left.text(), right));
  }
  CheckDefined(right);
  Integer a = 0, b = 0;
  if (left.GetInteger(a) && right.GetInteger(b)) return OperateIntegers(sign, a, b);
  double x = 0, y = 0;
  if (left.GetNumber(x) && right.GetNumber(y)) return OperateFloats(sign, x, y);
  if (sign == "+" && left.text() && right.text()) {
    return interpreter.NewText(*left.text() + *right.text());
  }
  if (sign == "+" && left.items() && right.items() && left.IsTuple() == right.IsTuple()) {
    List items = *left.items();
    items.insert(items.end(), right.items()->begin(), right.items()->end());
    return interpreter.NewList(std::move(items), left.IsTuple());
  }
  if (sign == "*" && (left.text() || left.items()) && right.GetInteger(b)) {
    return Repeat(interpreter, left, b);
  }
  if (sign == "*" && (right.text() || right.items()) && left.GetInteger(a)) {
    return Repeat(interpreter, right, a);
  }
  Unsupported(sign, left, right);
}

int Order(Interpreter& interpreter, const Value& left, const Value& right, std::string_view sign) {
  CheckDefined(left);
  CheckDefined(right);
  interpreter.budget().TakeSteps(1);
  const auto sign_of = [](auto order) { return order < 0 ? -1 : order > 0 ? 1 : 0; };
  Integer a = 0, b = 0;
  if (left.GetInteger(a) && right.GetInteger(b)) return a < b ? -1 : a > b ? 1 : 0;
  double x = 0, y = 0;
  if (left.GetNumber(x) && right.GetNumber(y)) return x < y ? -1 : x > y ? 1 : 0;
  if (left.text() && right.text()) return sign_of(left.text()->compare(*right.text()));
  if (left.items() && right.items() && left.IsTuple() == right.IsTuple()) {
    const List &first = *left.items(), &second = *right.items();
    for (size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
      if (Equal(first[i], second[i], interpreter.budget())) continue;
      return Order(interpreter, first[i], second[i], sign);
    }
    return sign_of(first.size() <=> second.size());
  }
  Raise("'" + std::string(sign) + "' not supported between instances of '" + left.TypeName() +
        "' and '" + right.TypeName() + "'");
}

bool Contains(Interpreter& interpreter, const Value& container, const Value& value) {
  Budget& budget = interpreter.budget();
  if (const auto* text = container.text()) {
    if (!value.text()) {
      Raise(std::string("'in <string>' requires string as left operand, not ") + value.TypeName());
    }
    budget.TakeSteps(text->size() / 64);
    return text->find(*value.text()) != std::string::npos;
  }
  if (const auto* members = container.members()) {
    CheckHashable(value);
    return FindMember(*members, value, budget);
  }
  if (const auto* items = container.items()) {
    return std::ranges::any_of(*items,
                               [&](const Value& item) { return Equal(item, value, budget); });
  }
  if (container.IsUndefined()) return false;
  Raise(std::string("argument of type '") + container.TypeName() + "' is not iterable");
}

Value Slice(Interpreter& interpreter, const Value& object, const Value& start, const Value& stop,
            const Value& step) {
  CheckDefined(object);
  if (!object.text() && !object.items()) {
    return Missing(std::string(object.TypeName()) + " object cannot be sliced");
  }
  std::u32string codes;
  if (object.text()) {
    interpreter.budget().TakeSteps(object.text()->size() / 16);
    codes = ToCodePoints(*object.text());
  }
  const auto size = static_cast<int64_t>(object.text() ? codes.size() : object.items()->size());
  const int64_t stride = step.IsNone() ? 1 : IntegerOf(step, "a slice");
  if (stride == 0) Raise("slice step cannot be zero");
  // Where Python puts a bound that is left out or lies outside.
  const int64_t least = stride > 0 ? 0 : -1, most = stride > 0 ? size : size - 1;
  const auto bound = [&](const Value& value, int64_t fallback) {
    if (value.IsNone()) return fallback;
    int64_t at = IntegerOf(value, "a slice");
    if (at < 0) at = at < -size ? least : at + size;
    return std::clamp(at, least, std::max(least, most));
  };
  const int64_t first = bound(start, stride > 0 ? 0 : size - 1);
  const int64_t last = bound(stop, stride > 0 ? size : -1);
  std::string text;
  List items;
  for (Integer i = first; stride > 0 ? i < last : i > last; i += stride) {
    const auto at = static_cast<size_t>(i);
    if (object.text()) {
      AppendCodePoint(codes[at], text);
    } else {
      items.push_back((*object.items())[at]);
    }
  }
  return object.text() ? interpreter.NewText(std::move(text))
                       : interpreter.NewList(std::move(items), object.IsTuple());
}

int64_t IntegerOf(const Value& value, std::string_view what) {
  CheckDefined(value);
  Integer integer = 0;
  if (!value.GetInteger(integer)) {
    Raise(std::string(what) + " needs an integer, not " + value.TypeName());
  }
  return static_cast<int64_t>(std::clamp<Integer>(integer, INT64_MIN, INT64_MAX));
}

const std::string& TextOf(const Value& value, std::string_view what) {
  CheckDefined(value);
  if (!value.text()) Raise(std::string(what) + " must be str, not " + value.TypeName());
  return *value.text();
}

}  // namespace weft::jinja
