// Runs a parsed template. Sandboxed: values are immutable, only the attributes, functions, filters
// and tests written here exist, and a budget bounds time and memory.
#pragma once

#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "language/template/syntax.h"
#include "language/template/value.h"

namespace weft::jinja {

struct Rendering {
  std::string text;
  std::vector<std::pair<size_t, size_t>> generation;  // bytes of text inside generation blocks
};

class Interpreter {
 public:
  // Names of the template's context; the clock is what strftime_now reads. All are kept.
  Interpreter(const Syntax& syntax, const std::string& file, Budget budget,
              const std::function<std::tm()>& clock);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  void Define(std::string_view name, Value value);
  // Once. Throws Error(kInvalidArgument): "FILE: line 3: reason".
  Rendering Run();

  // What operators, filters, tests and methods share.
  Budget& budget() { return budget_; }
  std::tm Now() const { return clock_(); }
  Value Call(const Value& function, const Arguments& arguments);
  Value Attribute(const Value& object, std::string_view name);  // object.name
  Value Item(const Value& object, const Value& key);            // object[key]
  // The items of a list, keys of a dict, code points of a text; an error for the rest.
  List Iterate(const Value& value);
  std::string TextOf(const Value& value) { return Text(value, budget_); }
  Value NewText(std::string text);  // taken from the budget
  Value NewList(List items, bool tuple = false);

 private:
  enum class Flow : uint8_t { kNext, kBreak, kContinue };
  class Scope;
  class Output;
  // Counts evaluations inside one another; too many are an error.
  class Depth {
   public:
    explicit Depth(int& depth);
    ~Depth() { --depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    int& depth_;
  };

  int SymbolOf(std::string_view name) const;  // the number of symbols when there is none
  Flow Execute(const Node& node);
  Flow For(const Node& node);
  Value Evaluate(const Node& node);
  Value Compare(const Node& node);
  Value Conditional(const Node& node);
  Arguments EvaluateArguments(const Node& node, size_t first);
  Value ApplyFilter(const Node& node, const Value* operand);
  void Assign(const Node& target, const Value& value);
  void Set(int symbol, Value value);
  Value Lookup(const Node& name);
  Value CallMacro(const Callable& macro, const Arguments& arguments);
  Value MakeMacro(const Node& node);
  Value CallGlobal(const std::string& name, const Arguments& arguments);
  std::string Captured(const Node& body);
  void Emit(std::string_view text);

  const Syntax& syntax_;
  const std::string& file_;
  Budget budget_;
  const std::function<std::tm()>& clock_;

  std::vector<std::optional<Value>> globals_;  // by symbol
  std::vector<std::pair<int, Value>> locals_;  // innermost last
  size_t frame_ = 0, scope_ = 0;               // where those of the macro and the block begin
  int scopes_ = 0;                             // open ones; 0: names are the template's own
  int depth_ = 0, line_ = 1;
  std::string* out_ = nullptr;
  Rendering rendering_;
  std::vector<std::shared_ptr<Namespace>> namespaces_;
  Value caller_;  // handed to the next macro that is called, by a call block
};

// value | name(arguments), value is name(arguments).
Value Filter(Interpreter& interpreter, std::string_view name, const Value& value,
             const Arguments& arguments);
bool Test(Interpreter& interpreter, std::string_view name, const Value& value,
          const Arguments& arguments);
// left name right, for + - * / // % **.
Value Operate(Interpreter& interpreter, std::string_view name, const Value& left,
              const Value& right);
// -1, 0 or 1; an error for values without an order. sign is for its message.
int Order(Interpreter& interpreter, const Value& left, const Value& right, std::string_view sign);
bool Contains(Interpreter& interpreter, const Value& container, const Value& value);
Value Slice(Interpreter& interpreter, const Value& object, const Value& start, const Value& stop,
            const Value& step);
// Methods of texts, lists, tuples and dicts, and of loops.
enum class MethodKind : uint8_t { kNone, kSafe, kUnsafe };
MethodKind FindMethod(const Value& object, std::string_view name);
Value LoopMember(const Value& loop, std::string_view name);  // of FindMethod's safe ones
Value CallMethod(Interpreter& interpreter, const Value& object, std::string_view name,
                 const Arguments& arguments);
// "..." % value, "...".format(arguments).
std::string FormatPercent(Interpreter& interpreter, const std::string& format, const Value& value);
std::string FormatBraces(Interpreter& interpreter, const std::string& format,
                         const Arguments& arguments);
// json.dumps; ensure_ascii, indent, separators and sort_keys as there.
std::string ToJson(Interpreter& interpreter, const Value& value, const Arguments& arguments);

// Of an argument that must be of a kind; `what` names it in the error.
int64_t IntegerOf(const Value& value, std::string_view what);
const std::string& TextOf(const Value& value, std::string_view what);

}  // namespace weft::jinja
