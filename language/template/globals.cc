// The functions that every template has.
#include <ctime>

#include "language/template/interpreter.h"

namespace weft::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;  // as Jinja's sandbox

}  // namespace

Value Interpreter::CallGlobal(const std::string& name, const Arguments& arguments) {
  if (name == "range") {
    const auto bound = Bind(arguments, name, {"start", "stop", "step"});
    if (!bound[0]) Raise("range expected at least 1 argument, got 0");
    const int64_t first = IntegerOf(*bound[0], "range");
    const int64_t start = bound[1] ? first : 0;
    const int64_t stop = bound[1] ? IntegerOf(*bound[1], "range") : first;
    const int64_t step = bound[2] ? IntegerOf(*bound[2], "range") : 1;
    if (step == 0) Raise("range() arg 3 must not be zero");
    const Integer distance = step > 0 ? Integer{stop} - start : Integer{start} - stop;
    const Integer stride = step > 0 ? Integer{step} : -Integer{step};
    const Integer count = distance > 0 ? (distance + stride - 1) / stride : 0;
    if (count > kMaxRange) {
      Raise("Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
    }
    List items;
    for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) items.emplace_back(start + i * step);
    return NewList(std::move(items));
  }
  if (name == "dict" || name == "namespace") {
    if (arguments.positional.size() > 1) Raise(name + " expected at most 1 argument");
    Dict members;
    if (!arguments.positional.empty()) {
      const Value& first = arguments.positional[0];
      if (!first.members()) Raise(name + " of " + first.TypeName() + " is not supported");
      members = *first.members();
    }
    for (const auto& [key, value] : arguments.keywords) SetMember(members, key, value, budget_);
    budget_.TakeBytes(members.size() * 2 * sizeof(Value));
    if (name == "dict") return members;
    const auto held = std::make_shared<Namespace>();
    for (auto& [key, value] : members) held->members.emplace_back(TextOf(key), value);
    budget_.TakeBytes(sizeof(Namespace));
    namespaces_.push_back(held);
    return held;
  }
  if (name == "raise_exception") {
    const auto bound = Bind(arguments, name, {"message"});
    Raise(bound[0] ? TextOf(*bound[0]) : "");
  }
  if (name == "strftime_now") {
    const auto bound = Bind(arguments, name, {"format"});
    if (!bound[0]) Raise("strftime_now needs a format");
    const std::string& format = jinja::TextOf(*bound[0], "the format of strftime_now");
    if (format.size() > 256) Raise("the format of strftime_now is too long");
    const std::tm now = Now();
    char text[4096];
    const size_t size = std::strftime(text, sizeof(text), format.c_str(), &now);
    return NewText(std::string(text, size));
  }
  Raise(name + " is not supported");
}

}  // namespace weft::jinja
