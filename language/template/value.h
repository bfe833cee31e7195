// The values of chat templates: those of Python that Jinja templates can make, all immutable but
// namespaces. Text is well-formed UTF-8, indices count code points.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace weft {

class JsonValue;

namespace jinja {

class Value;
struct Callable;
__extension__ using Integer = __int128;
using List = std::vector<Value>;
using Dict = std::vector<std::pair<Value, Value>>;  // in the order of insertion, keys different

// What a rendering may still take. Values share their parts, so even looking at one may take time
// and text out of proportion to what made it.
class Budget {
 public:
  Budget(uint64_t steps, uint64_t bytes) : steps_(steps), bytes_(bytes) {}
  // Each throws Error(kInvalidArgument) when there is not so much left.
  void TakeSteps(uint64_t steps);
  void TakeBytes(uint64_t bytes);
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t steps_, bytes_;
};

// What a name, attribute or item that is not there evaluates to: prints as nothing, is false and
// empty; anything else done with it is an error of this message.
struct Undefined {
  std::shared_ptr<const std::string> message;
};
struct None {};
struct ListRef {
  std::shared_ptr<const List> items;
  bool tuple = false;
  int depth = 1;  // of containers inside one another
};
struct DictRef {
  std::shared_ptr<const Dict> members;
  int depth = 1;
};
struct Namespace {
  std::vector<std::pair<std::string, Value>> members;
};
struct Loop {
  List items;
  int64_t index = 0;  // of the item at hand
  int64_t depth = 1;
  List changed;  // the last arguments of loop.changed
};

class Value {
 public:
  Value() = default;  // none
  Value(Undefined value) : data_(std::move(value)) {}
  Value(bool value) : data_(value) {}
  Value(Integer value) : data_(value) {}
  Value(int64_t value) : data_(Integer{value}) {}
  Value(int value) : data_(Integer{value}) {}
  Value(size_t value) : data_(static_cast<Integer>(value)) {}
  Value(double value) : data_(value) {}
  Value(std::string text) : data_(std::make_shared<const std::string>(std::move(text))) {}
  Value(std::string_view text) : Value(std::string(text)) {}
  Value(const char* text) : Value(std::string(text)) {}
  // Containers nest up to 200 deep; deeper ones are Error(kInvalidArgument).
  Value(List items, bool tuple = false);
  Value(Dict members);
  Value(std::shared_ptr<Namespace> value) : data_(std::move(value)) {}
  Value(std::shared_ptr<Loop> value) : data_(std::move(value)) {}
  Value(std::shared_ptr<const Callable> value) : data_(std::move(value)) {}
  // Numbers keep their kind; an integer beyond 127 bits is Error(kInvalidArgument).
  static Value FromJson(const JsonValue& json);

  template <class T>
  const T* As() const {
    return std::get_if<T>(&data_);
  }
  bool IsUndefined() const { return As<Undefined>(); }
  bool IsNone() const { return As<None>(); }
  // Each null when the value is of another kind.
  const std::string* text() const {
    const auto* held = As<std::shared_ptr<const std::string>>();
    return held ? held->get() : nullptr;
  }
  const List* items() const {  // of a list or tuple
    const auto* held = As<ListRef>();
    return held ? held->items.get() : nullptr;
  }
  bool IsTuple() const { return As<ListRef>() && As<ListRef>()->tuple; }
  const Dict* members() const {
    const auto* held = As<DictRef>();
    return held ? held->members.get() : nullptr;
  }
  Namespace* name_space() const {
    const auto* held = As<std::shared_ptr<Namespace>>();
    return held ? held->get() : nullptr;
  }
  Loop* loop() const {
    const auto* held = As<std::shared_ptr<Loop>>();
    return held ? held->get() : nullptr;
  }
  const Callable* callable() const {
    const auto* held = As<std::shared_ptr<const Callable>>();
    return held ? held->get() : nullptr;
  }
  // True for bool too, as in Python.
  bool GetInteger(Integer& value) const;
  bool GetNumber(double& value) const;  // integers as well
  bool IsNumber() const { return As<bool>() || As<Integer>() || As<double>(); }

  bool Truthy() const;
  int Depth() const;             // 0 for what holds no other values
  const char* TypeName() const;  // "str", "dict", "NoneType"

 private:
  std::variant<None, Undefined, bool, Integer, double, std::shared_ptr<const std::string>, ListRef,
               DictRef, std::shared_ptr<Namespace>, std::shared_ptr<Loop>,
               std::shared_ptr<const Callable>>
      data_;
};

struct Callable {
  enum class Kind : uint8_t { kGlobal, kMethod, kMacro };
  Kind kind;
  std::string name;
  Value self;                         // of a method
  const struct Node* node = nullptr;  // of a macro
  std::vector<std::pair<int, Value>>
      captured;  // what a macro sees besides the template's own names
  int depth = 1;
};
Value MakeCallable(Callable callable);

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;
};
// The arguments of `what` in the order of its parameters, null where none is given.
std::vector<const Value*> Bind(const Arguments& arguments, std::string_view what,
                               std::initializer_list<std::string_view> parameters);

bool Equal(const Value& a, const Value& b, Budget& budget);  // Python's ==
const Value* FindMember(const Dict& dict, const Value& key, Budget& budget);
const Value* FindMember(const Dict& dict, std::string_view key);
void CheckHashable(const Value& key);  // lists and dicts are no keys
void SetMember(Dict& dict, Value key, Value value, Budget& budget);

std::string IntegerText(Integer value);
std::string FloatText(double value);                   // Python's repr
std::string Repr(const Value& value, Budget& budget);  // Python's repr
std::string Text(const Value& value, Budget& budget);  // Python's str; undefined is ""
[[noreturn]] void Raise(const std::string& message);   // Error(kInvalidArgument)
Undefined Missing(std::string message);
void CheckDefined(const Value& value);  // raises the message of an undefined one

}  // namespace jinja
}  // namespace weft
