// The interpreter's expressions.
#include <algorithm>

#include "language/template/interpreter.h"
#include "language/unicode.h"

namespace weft::jinja {
namespace {

constexpr int kMaxDepth = 1000;  // of evaluations inside one another

// "list object", "None", as Jinja names types in messages.
std::string ObjectName(const Value& value) {
  return value.IsNone() ? "None" : std::string(value.TypeName()) + " object";
}

}  // namespace

Interpreter::Depth::Depth(int& depth) : depth_(depth) {
  if (depth >= kMaxDepth) Raise("maximum recursion depth exceeded");
  ++depth_;
}

Arguments Interpreter::EvaluateArguments(const Node& node, size_t first) {
  Arguments arguments;
  for (size_t i = first; i < node.children.size(); ++i) {
    arguments.positional.push_back(Evaluate(*node.children[i]));
  }
  for (const auto& [name, child] : node.keywords) {
    arguments.keywords.emplace_back(name, Evaluate(*child));
  }
  return arguments;
}

// A filter without operand, at the end of a chain, takes the one that is given.
Value Interpreter::ApplyFilter(const Node& node, const Value* operand) {
  const NodePtr& child = node.children[0];
  const Value value = !child                                        ? *operand
                      : operand && child->kind == NodeKind::kFilter ? ApplyFilter(*child, operand)
                                                                    : Evaluate(*child);
  return Filter(*this, node.name, value, EvaluateArguments(node, 1));
}

Value Interpreter::Compare(const Node& node) {
  Value left = Evaluate(*node.children[0]);
  for (size_t i = 0; i < node.names.size(); ++i) {
    const std::string& sign = node.names[i];
    Value right = Evaluate(*node.children[i + 1]);
    bool holds = false;
    if (sign == "==" || sign == "!=") {
      holds = Equal(left, right, budget_) == (sign == "==");
    } else if (sign == "in" || sign == "not in") {
      holds = Contains(*this, right, left) == (sign == "in");
    } else {
      const int order = Order(*this, left, right, sign);
      holds = sign == "<"    ? order < 0
              : sign == "<=" ? order <= 0
              : sign == ">"  ? order > 0
                             : order >= 0;
    }
    if (!holds) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::Conditional(const Node& node) {
  if (Evaluate(*node.children[0]).Truthy()) return Evaluate(*node.children[1]);
  if (node.children[2]) return Evaluate(*node.children[2]);
  return Missing("the inline if-expression evaluated to false and no else section was defined.");
}

Value Interpreter::Evaluate(const Node& node) {
  const Depth depth(depth_);
  budget_.TakeSteps(1);
  line_ = node.line;
  const auto child = [&](size_t i) { return Evaluate(*node.children[i]); };
  switch (node.kind) {
    case NodeKind::kConstant:
      return node.value;
    case NodeKind::kName:
      return Lookup(node);
    case NodeKind::kList:
    case NodeKind::kTuple: {
      List items;
      for (size_t i = 0; i < node.children.size(); ++i) items.push_back(child(i));
      return NewList(std::move(items), node.kind == NodeKind::kTuple);
    }
    case NodeKind::kDict: {
      Dict members;
      for (size_t i = 0; i < node.children.size(); i += 2) {
        Value key = child(i);
        SetMember(members, std::move(key), child(i + 1), budget_);
      }
      budget_.TakeBytes(members.size() * 2 * sizeof(Value));
      return members;
    }
    case NodeKind::kAttribute:
      return Attribute(child(0), node.name);
    case NodeKind::kItem: {
      const Value object = child(0);
      return Item(object, child(1));
    }
    case NodeKind::kSlice: {
      const auto bound = [&](size_t i) { return node.children[i] ? child(i) : Value(); };
      const Value object = child(0);
      return Slice(*this, object, bound(1), bound(2), bound(3));
    }
    case NodeKind::kCall: {
      const Value function = child(0);
      return Call(function, EvaluateArguments(node, 1));
    }
    case NodeKind::kFilter:
      return ApplyFilter(node, nullptr);
    case NodeKind::kTest: {
      const Value value = child(0);
      return Test(*this, node.name, value, EvaluateArguments(node, 1));
    }
    case NodeKind::kNot:
      return !child(0).Truthy();
    case NodeKind::kNegative: {
      const Value operand = child(0);
      const auto* number = operand.As<double>();
      return number ? Value(-*number) : Operate(*this, "-", Value(0), operand);
    }
    case NodeKind::kPositive:
      return Operate(*this, "+", Value(0), child(0));
    case NodeKind::kAnd: {
      Value left = child(0);
      return left.Truthy() ? child(1) : left;
    }
    case NodeKind::kOr: {
      Value left = child(0);
      return left.Truthy() ? left : child(1);
    }
    case NodeKind::kConditional:
      return Conditional(node);
    case NodeKind::kBinary: {
      const Value left = child(0);
      return Operate(*this, node.name, left, child(1));
    }
    case NodeKind::kConcat: {
      std::string text;
      for (size_t i = 0; i < node.children.size(); ++i) text += TextOf(child(i));
      return NewText(std::move(text));
    }
    case NodeKind::kCompare:
      return Compare(node);
    default:
      Raise("not an expression");
  }
}

List Interpreter::Iterate(const Value& value) {
  List items;
  if (const auto* held = value.items()) {
    items = *held;
  } else if (const auto* members = value.members()) {
    for (const auto& [key, member] : *members) items.push_back(key);
  } else if (const auto* text = value.text()) {
    budget_.TakeBytes(text->size() * sizeof(Value));
    for (size_t position = 0; position < text->size();) {
      const uint32_t size = DecodeCodePoint(*text, position).size;
      items.emplace_back(text->substr(position, size));
      position += size;
    }
  } else if (!value.IsUndefined()) {
    Raise(std::string("'") + value.TypeName() + "' object is not iterable");
  }
  budget_.TakeSteps(items.size() / 8);
  budget_.TakeBytes(items.size() * sizeof(Value));
  return items;
}

Value Interpreter::Attribute(const Value& object, std::string_view name) {
  CheckDefined(object);
  const std::string key(name);
  if (Namespace* held = object.name_space()) {
    for (const auto& [member, value] : held->members) {
      if (member == name) return value;
    }
  }
  switch (FindMethod(object, name)) {
    case MethodKind::kSafe: {
      if (object.loop()) return LoopMember(object, name);
      return MakeCallable({Callable::Kind::kMethod, key, object});
    }
    case MethodKind::kUnsafe:
      return Missing("access to attribute '" + key + "' of '" + object.TypeName() +
                     "' object is unsafe.");
    case MethodKind::kNone:
      break;
  }
  if (const Dict* members = object.members()) {
    if (const Value* found = FindMember(*members, name)) return *found;
  }
  return Missing("'" + ObjectName(object) + "' has no attribute '" + key + "'");
}

Value Interpreter::Item(const Value& object, const Value& key) {
  CheckDefined(object);
  Integer index = 0;
  if (const Dict* members = object.members()) {
    if (const Value* found = FindMember(*members, key, budget_)) return *found;
  } else if (key.GetInteger(index) && (object.items() || object.text())) {
    const bool list = object.items();
    const size_t bytes = list ? 0 : object.text()->size();
    budget_.TakeSteps(bytes / 64);
    const auto size =
        static_cast<Integer>(list ? object.items()->size() : CountCodePoints(*object.text()));
    if (index < 0) index += size;
    if (index >= 0 && index < size) {
      if (list) return (*object.items())[static_cast<size_t>(index)];
      size_t position = 0;
      for (; index > 0; --index) position += DecodeCodePoint(*object.text(), position).size;
      return object.text()->substr(position, DecodeCodePoint(*object.text(), position).size);
    }
  }
  if (const auto* name = key.text()) return Attribute(object, *name);
  return Missing(ObjectName(object) + " has no element " + Repr(key, budget_));
}

}  // namespace weft::jinja
