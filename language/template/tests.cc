// The tests of Jinja: value is name(arguments).
#include <algorithm>

#include "language/template/interpreter.h"
#include "language/template/text_functions.h"

namespace weft::jinja {
namespace {

using Function = bool (*)(Interpreter&, const Value&, const Value*);

bool IsIntegerKind(const Value& value) {
  return value.As<Integer>();
}

// value % divisor == remainder
bool Leaves(Interpreter& interpreter, const Value& value, const Value& divisor, int remainder) {
  if (value.text()) Raise("the test needs a number, not str");
  return Equal(Operate(interpreter, "%", value, divisor), remainder, interpreter.budget());
}

struct Entry {
  std::string_view name;
  bool argument;  // takes one
  Function function;
};
constexpr Function kEqual = [](Interpreter& in, const Value& value, const Value* argument) {
  return Equal(value, *argument, in.budget());
};
constexpr Function kDiffers = [](Interpreter& in, const Value& value, const Value* argument) {
  return !Equal(value, *argument, in.budget());
};
constexpr Function kLess = [](Interpreter& in, const Value& value, const Value* argument) {
  return Order(in, value, *argument, "<") < 0;
};
constexpr Function kAtMost = [](Interpreter& in, const Value& value, const Value* argument) {
  return Order(in, value, *argument, "<=") <= 0;
};
constexpr Function kGreater = [](Interpreter& in, const Value& value, const Value* argument) {
  return Order(in, value, *argument, ">") > 0;
};
constexpr Function kAtLeast = [](Interpreter& in, const Value& value, const Value* argument) {
  return Order(in, value, *argument, ">=") >= 0;
};
constexpr Entry kTests[] = {
    {"!=", true, kDiffers},
    {"<", true, kLess},
    {"<=", true, kAtMost},
    {"==", true, kEqual},
    {">", true, kGreater},
    {">=", true, kAtLeast},
    {"boolean", false,
     [](Interpreter&, const Value& value, const Value*) { return value.As<bool>() != nullptr; }},
    {"callable", false,
     [](Interpreter&, const Value& value, const Value*) { return value.callable() != nullptr; }},
    {"defined", false,
     [](Interpreter&, const Value& value, const Value*) { return !value.IsUndefined(); }},
    {"divisibleby", true,
     [](Interpreter& in, const Value& value, const Value* argument) {
       return Leaves(in, value, *argument, 0);
     }},
    {"eq", true, kEqual},
    {"equalto", true, kEqual},
    {"even", false,
     [](Interpreter& in, const Value& value, const Value*) { return Leaves(in, value, 2, 0); }},
    {"false", false,
     [](Interpreter&, const Value& value, const Value*) {
       return value.As<bool>() && !value.Truthy();
     }},
    {"filter", false,
     [](Interpreter&, const Value& value, const Value*) {
       return value.text() && HasFilter(*value.text());
     }},
    {"float", false,
     [](Interpreter&, const Value& value, const Value*) { return value.As<double>() != nullptr; }},
    {"ge", true, kAtLeast},
    {"greaterthan", true, kGreater},
    {"gt", true, kGreater},
    {"in", true,
     [](Interpreter& in, const Value& value, const Value* argument) {
       return Contains(in, *argument, value);
     }},
    {"integer", false,
     [](Interpreter&, const Value& value, const Value*) { return IsIntegerKind(value); }},
    {"iterable", false,
     [](Interpreter&, const Value& value, const Value*) {
       return value.text() || value.items() || value.members() || value.IsUndefined();
     }},
    {"le", true, kAtMost},
    {"lessthan", true, kLess},
    {"lower", false,
     [](Interpreter& in, const Value& value, const Value*) {
       return CallMethod(in, in.TextOf(value), "islower", {}).Truthy();
     }},
    {"lt", true, kLess},
    {"mapping", false,
     [](Interpreter&, const Value& value, const Value*) { return value.members() != nullptr; }},
    {"ne", true, kDiffers},
    {"none", false, [](Interpreter&, const Value& value, const Value*) { return value.IsNone(); }},
    {"number", false,
     [](Interpreter&, const Value& value, const Value*) { return value.IsNumber(); }},
    {"odd", false,
     [](Interpreter& in, const Value& value, const Value*) { return Leaves(in, value, 2, 1); }},
    {"sameas", true,
     [](Interpreter& in, const Value& value, const Value* argument) {
       return std::string_view(value.TypeName()) == argument->TypeName() &&
              Equal(value, *argument, in.budget());
     }},
    {"sequence", false,
     [](Interpreter&, const Value& value, const Value*) {
       return value.text() || value.items() || value.members() || value.IsUndefined();
     }},
    {"string", false,
     [](Interpreter&, const Value& value, const Value*) { return value.text() != nullptr; }},
    {"test", false,
     [](Interpreter&, const Value& value, const Value*) {
       return value.text() && HasTest(*value.text());
     }},
    {"true", false,
     [](Interpreter&, const Value& value, const Value*) {
       return value.As<bool>() && value.Truthy();
     }},
    {"undefined", false,
     [](Interpreter&, const Value& value, const Value*) { return value.IsUndefined(); }},
    {"upper", false,
     [](Interpreter& in, const Value& value, const Value*) {
       return CallMethod(in, in.TextOf(value), "isupper", {}).Truthy();
     }},
};

const Entry* FindEntry(std::string_view name) {
  const auto* found = std::ranges::find(kTests, name, &Entry::name);
  return found == std::end(kTests) ? nullptr : found;
}

}  // namespace

bool HasTest(std::string_view name) {
  return FindEntry(name) != nullptr;
}

bool Test(Interpreter& interpreter, std::string_view name, const Value& value,
          const Arguments& arguments) {
  const Entry& entry = *FindEntry(name);
  if (arguments.positional.size() != (entry.argument ? 1u : 0u) || !arguments.keywords.empty()) {
    Raise("the test " + std::string(name) + " takes " + (entry.argument ? "one" : "no") +
          " argument");
  }
  return entry.function(interpreter, value, entry.argument ? &arguments.positional[0] : nullptr);
}

}  // namespace weft::jinja
