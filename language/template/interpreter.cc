#include "language/template/interpreter.h"

#include <algorithm>

#include "base/check.h"

namespace weft::jinja {
namespace {

constexpr std::string_view kGlobals[] = {"range",  "dict",   "namespace",       "lipsum",
                                         "joiner", "cycler", "raise_exception", "strftime_now"};

}  // namespace

// A block whose names end with it.
class Interpreter::Scope {
 public:
  explicit Scope(Interpreter& interpreter) : interpreter_(interpreter), scope_(interpreter.scope_) {
    interpreter.scope_ = interpreter.locals_.size();
    ++interpreter.scopes_;
  }
  ~Scope() {
    interpreter_.locals_.resize(interpreter_.scope_);
    interpreter_.scope_ = scope_;
    --interpreter_.scopes_;
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Interpreter& interpreter_;
  size_t scope_;
};

// Sends what is printed elsewhere for a while.
class Interpreter::Output {
 public:
  Output(Interpreter& interpreter, std::string& out)
      : interpreter_(interpreter), before_(interpreter.out_) {
    interpreter.out_ = &out;
  }
  ~Output() { interpreter_.out_ = before_; }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

 private:
  Interpreter& interpreter_;
  std::string* before_;
};

Interpreter::Interpreter(const Syntax& syntax, const std::string& file, Budget budget,
                         const std::function<std::tm()>& clock)
    : syntax_(syntax),
      file_(file),
      budget_(budget),
      clock_(clock),
      globals_(syntax.symbols.size()) {
  for (const std::string_view name : kGlobals) {
    Define(name, MakeCallable({Callable::Kind::kGlobal, std::string(name)}));
  }
}

// Namespaces may hold one another in circles.
Interpreter::~Interpreter() {
  for (const auto& held : namespaces_) held->members.clear();
}

int Interpreter::SymbolOf(std::string_view name) const {
  return static_cast<int>(std::ranges::find(syntax_.symbols, name) - syntax_.symbols.begin());
}

void Interpreter::Define(std::string_view name, Value value) {
  const auto symbol = static_cast<size_t>(SymbolOf(name));
  if (symbol < globals_.size()) globals_[symbol] = std::move(value);  // else nobody asks for it
}

Rendering Interpreter::Run() {
  const Output output(*this, rendering_.text);
  try {
    Execute(*syntax_.root);
  } catch (Error& error) {
    error.AddContext(file_ + ": line " + std::to_string(line_));
    throw;
  }
  return std::move(rendering_);
}

Value Interpreter::NewText(std::string text) {
  budget_.TakeBytes(text.size());
  return text;
}

Value Interpreter::NewList(List items, bool tuple) {
  budget_.TakeBytes(items.size() * sizeof(Value));
  budget_.TakeSteps(items.size() / 8);
  return {std::move(items), tuple};
}

void Interpreter::Emit(std::string_view text) {
  budget_.TakeBytes(text.size());
  out_->append(text);
}

std::string Interpreter::Captured(const Node& body) {
  std::string text;
  const Output output(*this, text);
  const Scope scope(*this);
  Execute(body);
  return text;
}

void Interpreter::Set(int symbol, Value value) {
  if (scopes_ == 0) {
    globals_[static_cast<size_t>(symbol)] = std::move(value);
    return;
  }
  for (size_t i = locals_.size(); i > scope_; --i) {
    if (locals_[i - 1].first != symbol) continue;
    locals_[i - 1].second = std::move(value);
    return;
  }
  locals_.emplace_back(symbol, std::move(value));
}

void Interpreter::Assign(const Node& target, const Value& value) {
  if (target.kind == NodeKind::kName) return Set(target.symbol, value);
  if (target.kind == NodeKind::kAttribute) {
    Namespace* held = Lookup(*target.children[0]).name_space();
    if (!held) Raise("cannot assign attribute on non-namespace object");
    for (auto& [name, member] : held->members) {
      if (name != target.name) continue;
      member = value;
      return;
    }
    budget_.TakeSteps(held->members.size());
    held->members.emplace_back(target.name, value);
    return;
  }
  const List items = Iterate(value);
  if (items.size() != target.children.size()) {
    Raise("expected " + std::to_string(target.children.size()) + " values to unpack, got " +
          std::to_string(items.size()));
  }
  for (size_t i = 0; i < items.size(); ++i) Assign(*target.children[i], items[i]);
}

Value Interpreter::Lookup(const Node& name) {
  for (size_t i = locals_.size(); i > frame_; --i) {
    if (locals_[i - 1].first == name.symbol) return locals_[i - 1].second;
  }
  const auto& global = globals_[static_cast<size_t>(name.symbol)];
  return global ? *global : Missing("'" + name.name + "' is undefined");
}

Interpreter::Flow Interpreter::Execute(const Node& node) {
  const Depth depth(depth_);
  budget_.TakeSteps(1);
  line_ = node.line;
  switch (node.kind) {
    case NodeKind::kBlock:
      for (const NodePtr& child : node.children) {
        if (const Flow flow = Execute(*child); flow != Flow::kNext) return flow;
      }
      break;
    case NodeKind::kData:
      Emit(*node.value.text());
      break;
    case NodeKind::kPrint: {
      const Value value = Evaluate(*node.children[0]);
      if (const auto* text = value.text()) {
        Emit(*text);
      } else {
        Emit(TextOf(value));
      }
      break;
    }
    case NodeKind::kIf: {
      size_t i = 0;
      for (; i + 1 < node.children.size(); i += 2) {
        if (Evaluate(*node.children[i]).Truthy()) return Execute(*node.children[i + 1]);
      }
      if (i < node.children.size()) return Execute(*node.children[i]);
      break;
    }
    case NodeKind::kFor:
      return For(node);
    case NodeKind::kSet:
      Assign(*node.children[0], Evaluate(*node.children[1]));
      break;
    case NodeKind::kSetBlock: {
      Value value = Captured(*node.children[1]);
      if (node.children[2]) value = ApplyFilter(*node.children[2], &value);
      Assign(*node.children[0], value);
      break;
    }
    case NodeKind::kWith: {
      std::vector<Value> values;
      for (size_t i = 2; i < node.children.size(); i += 2) {
        values.push_back(Evaluate(*node.children[i]));
      }
      const Scope scope(*this);
      for (size_t i = 0; i < values.size(); ++i) Set(node.children[2 * i + 1]->symbol, values[i]);
      return Execute(*node.children[0]);
    }
    case NodeKind::kMacro:
      Set(node.symbol, MakeMacro(node));
      break;
    case NodeKind::kCallBlock: {
      const Node& call = *node.children[0];
      const Value function = Evaluate(*call.children[0]);
      const Arguments arguments = EvaluateArguments(call, 1);
      caller_ = MakeMacro(*node.children[1]);
      Emit(TextOf(Call(function, arguments)));
      caller_ = {};
      break;
    }
    case NodeKind::kFilterBlock: {
      const Value text = Captured(*node.children[1]);
      Emit(TextOf(ApplyFilter(*node.children[0], &text)));
      break;
    }
    case NodeKind::kGeneration: {
      if (out_ != &rendering_.text) Raise("a generation block stands inside a captured text");
      const size_t begin = out_->size();
      const Scope scope(*this);
      const Flow flow = Execute(*node.children[0]);
      rendering_.generation.emplace_back(begin, out_->size());
      return flow;
    }
    case NodeKind::kBreak:
      return Flow::kBreak;
    case NodeKind::kContinue:
      return Flow::kContinue;
    default:
      Raise("not a statement");
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::For(const Node& node) {
  const Node& target = *node.children[0];
  List items = Iterate(Evaluate(*node.children[1]));
  if (node.children[3]) {
    const Scope scope(*this);
    std::erase_if(items, [&](const Value& item) {
      budget_.TakeSteps(1);
      Assign(target, item);
      return !Evaluate(*node.children[3]).Truthy();
    });
  }
  if (items.empty()) return node.children[4] ? Execute(*node.children[4]) : Flow::kNext;
  const int symbol = SymbolOf("loop");
  const auto loop = std::make_shared<Loop>();
  loop->items = std::move(items);
  for (const auto& [name, value] : locals_) {
    if (const Loop* outer = name == symbol ? value.loop() : nullptr) loop->depth = outer->depth + 1;
  }
  for (; loop->index < static_cast<int64_t>(loop->items.size()); ++loop->index) {
    budget_.TakeSteps(1);
    const Scope scope(*this);
    Set(symbol, loop);
    Assign(target, loop->items[static_cast<size_t>(loop->index)]);
    if (Execute(*node.children[2]) == Flow::kBreak) break;
  }
  loop->changed.clear();  // may hold the loop itself
  return Flow::kNext;
}

Value Interpreter::Call(const Value& function, const Arguments& arguments) {
  CheckDefined(function);
  const Callable* callable = function.callable();
  if (!callable) Raise(std::string("'") + function.TypeName() + "' object is not callable");
  const Depth depth(depth_);
  switch (callable->kind) {
    case Callable::Kind::kGlobal:
      return CallGlobal(callable->name, arguments);
    case Callable::Kind::kMethod:
      return CallMethod(*this, callable->self, callable->name, arguments);
    case Callable::Kind::kMacro:
      return CallMacro(*callable, arguments);
  }
  return {};
}

// A macro sees the template's own names as they are when it is called, and those of the blocks it
// stands in as they were when it was made.
Value Interpreter::MakeMacro(const Node& node) {
  Callable macro{Callable::Kind::kMacro, node.name};
  macro.node = &node;
  macro.captured.assign(locals_.begin() + static_cast<std::ptrdiff_t>(frame_), locals_.end());
  budget_.TakeBytes(macro.captured.size() * sizeof(Value));
  return MakeCallable(std::move(macro));
}

Value Interpreter::CallMacro(const Callable& macro, const Arguments& arguments) {
  const Node& node = *macro.node;
  if (arguments.positional.size() > node.parameters.size()) {
    Raise("macro '" + node.name + "' takes not more than " +
          std::to_string(node.parameters.size()) + " argument(s)");
  }
  const Value caller = std::exchange(caller_, Value());
  const int line = line_;
  const size_t frame = std::exchange(frame_, locals_.size());
  std::string text;
  {
    const Scope outer(*this);
    locals_.insert(locals_.end(), macro.captured.begin(), macro.captured.end());
    const Scope scope(*this);
    const Output output(*this, text);
    for (size_t i = 0; i < node.parameters.size(); ++i) {
      const std::string& name = node.parameter_names[i];
      const auto named =
          std::ranges::find(arguments.keywords, name, &std::pair<std::string, Value>::first);
      const NodePtr& fallback = node.children[i + 1];
      Value value = i < arguments.positional.size()     ? arguments.positional[i]
                    : named != arguments.keywords.end() ? named->second
                    : fallback                          ? Evaluate(*fallback)
                               : Missing("parameter '" + name + "' was not provided");
      Set(node.parameters[i], std::move(value));
    }
    for (const auto& [name, value] : arguments.keywords) {
      if (std::ranges::find(node.parameter_names, name) == node.parameter_names.end()) {
        Raise("macro '" + node.name + "' takes no keyword argument '" + name + "'");
      }
    }
    if (!caller.IsNone()) Set(SymbolOf("caller"), caller);
    Execute(*node.children[0]);
  }
  frame_ = frame;
  line_ = line;
  return text;
}

}  // namespace weft::jinja
