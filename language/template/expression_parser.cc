#include <algorithm>
#include <charconv>
#include <optional>

#include "base/check.h"
#include "language/json.h"
#include "language/template/parser.h"

namespace weft::jinja {
namespace {

// Counts how deep calls stand inside one another.
class Opened {
 public:
  explicit Opened(int& open) : open_(open) { ++open_; }
  ~Opened() { --open_; }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

 private:
  int& open_;
};

Value IntegerOf(const std::string& digits) {
  return Value::FromJson(ParseJson(digits, "integer"));
}

template <class... Nodes>
std::vector<NodePtr> Children(Nodes... nodes) {
  std::vector<NodePtr> children;
  (children.push_back(std::move(nodes)), ...);
  return children;
}

}  // namespace

NodePtr ExpressionParser::Expression(bool conditional) {
  const Opened opened(open_);
  if (open_ > kMaxDepth) Fail("nested deeper than " + std::to_string(kMaxDepth) + " levels");
  NodePtr node = Or();
  while (conditional && TakeName("if")) {
    NodePtr condition = Or();
    NodePtr otherwise = TakeName("else") ? Expression() : nullptr;
    node = Make(NodeKind::kConditional,
                Children(std::move(condition), std::move(node), std::move(otherwise)));
  }
  return node;
}

NodePtr ExpressionParser::Or() {
  NodePtr node = And();
  while (TakeName("or")) {
    NodePtr right = And();
    node = Make(NodeKind::kOr, Children(std::move(node), std::move(right)));
  }
  return node;
}

NodePtr ExpressionParser::And() {
  NodePtr node = Not();
  while (TakeName("and")) {
    NodePtr right = Not();
    node = Make(NodeKind::kAnd, Children(std::move(node), std::move(right)));
  }
  return node;
}

NodePtr ExpressionParser::Not() {
  int count = 0;
  while (TakeName("not")) ++count;
  if (count > kMaxDepth) Fail("more than " + std::to_string(kMaxDepth) + " times not");
  NodePtr node = Compare();
  for (; count > 0; --count) node = Make(NodeKind::kNot, Children(std::move(node)));
  return node;
}

NodePtr ExpressionParser::Compare() {
  NodePtr first = Sum();
  NodePtr compare;
  while (true) {
    std::string name;
    for (const char* sign : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (name.empty() && TakeOperator(sign)) name = sign;
    }
    if (name.empty() && TakeName("in")) name = "in";
    if (name.empty() && IsName("not") && words_[at_ + 1].kind == Word::Kind::kName &&
        words_[at_ + 1].text == "in") {
      Next();
      Next();
      name = "not in";
    }
    if (name.empty()) break;
    if (!compare) compare = Make(NodeKind::kCompare, Children(std::move(first)));
    compare->names.push_back(name);
    compare->children.push_back(Sum());
  }
  return compare ? Finish(std::move(compare)) : std::move(first);
}

NodePtr ExpressionParser::Binary(const std::string& name, NodePtr left, NodePtr right) const {
  NodePtr node = Make(NodeKind::kBinary, Children(std::move(left), std::move(right)));
  node->name = name;
  return node;
}

NodePtr ExpressionParser::Sum() {
  NodePtr node = Concat();
  while (IsOperator("+") || IsOperator("-")) {
    const std::string name = Next().text;
    NodePtr right = Concat();
    node = Binary(name, std::move(node), std::move(right));
  }
  return node;
}

NodePtr ExpressionParser::Concat() {
  NodePtr first = Product();
  if (!IsOperator("~")) return first;
  NodePtr node = Make(NodeKind::kConcat, Children(std::move(first)));
  while (TakeOperator("~")) node->children.push_back(Product());
  return Finish(std::move(node));
}

NodePtr ExpressionParser::Product() {
  NodePtr node = Power();
  while (IsOperator("*") || IsOperator("/") || IsOperator("//") || IsOperator("%")) {
    const std::string name = Next().text;
    NodePtr right = Power();
    node = Binary(name, std::move(node), std::move(right));
  }
  return node;
}

NodePtr ExpressionParser::Power() {
  NodePtr node = Unary(true);
  while (TakeOperator("**")) {  // Jinja groups from the left, unlike Python
    NodePtr right = Unary(true);
    node = Binary("**", std::move(node), std::move(right));
  }
  return node;
}

NodePtr ExpressionParser::Unary(bool with_filters) {
  const Opened opened(open_);
  if (open_ > kMaxDepth) Fail("nested deeper than " + std::to_string(kMaxDepth) + " levels");
  NodePtr node;
  if (TakeOperator("-")) {
    node = Unary(false);
    node = Make(NodeKind::kNegative, Children(std::move(node)));
  } else if (TakeOperator("+")) {
    node = Unary(false);
    node = Make(NodeKind::kPositive, Children(std::move(node)));
  } else {
    node = Primary();
  }
  node = Postfix(std::move(node));
  return with_filters ? FiltersAndTests(std::move(node)) : std::move(node);
}

NodePtr ExpressionParser::Postfix(NodePtr node) {
  while (true) {
    if (IsOperator(".") || IsOperator("[")) {
      node = Subscript(std::move(node));
    } else if (TakeOperator("(")) {
      node = Make(NodeKind::kCall, Children(std::move(node)));
      Arguments(*node);
      node = Finish(std::move(node));
    } else {
      return node;
    }
  }
}

NodePtr ExpressionParser::FiltersAndTests(NodePtr node) {
  while (true) {
    if (TakeOperator("|")) {
      node = Filter(std::move(node));
    } else if (TakeName("is")) {
      node = Test(std::move(node));
    } else if (TakeOperator("(")) {
      node = Make(NodeKind::kCall, Children(std::move(node)));
      Arguments(*node);
      node = Finish(std::move(node));
    } else {
      return node;
    }
  }
}

NodePtr ExpressionParser::Filters(NodePtr operand) {
  NodePtr node = Filter(std::move(operand));
  while (TakeOperator("|")) node = Filter(std::move(node));
  return node;
}

NodePtr ExpressionParser::Filter(NodePtr operand) {
  NodePtr node = Make(NodeKind::kFilter, Children(std::move(operand)));
  node->name = ExpectName();
  if (!HasFilter(node->name)) Fail("No filter named '" + node->name + "'.");
  if (TakeOperator("(")) Arguments(*node);
  return Finish(std::move(node));
}

NodePtr ExpressionParser::Test(NodePtr operand) {
  const bool negated = TakeName("not");
  NodePtr node = Make(NodeKind::kTest, Children(std::move(operand)));
  node->name = ExpectName();
  if (!HasTest(node->name)) Fail("No test named '" + node->name + "'.");
  using Kind = Word::Kind;
  const Kind kind = word().kind;
  if (TakeOperator("(")) {
    Arguments(*node);
  } else if (kind == Kind::kString || kind == Kind::kInteger || kind == Kind::kFloat ||
             IsOperator("[") || IsOperator("{") ||
             (kind == Kind::kName && !IsName("else") && !IsName("or") && !IsName("and") &&
              !IsName("if") && !IsName("in") && !IsName("not"))) {
    if (IsName("is")) Fail("tests with 'is' cannot follow one another");
    NodePtr argument = Primary();
    node->children.push_back(Postfix(std::move(argument)));
  }
  node = Finish(std::move(node));
  return negated ? Make(NodeKind::kNot, Children(std::move(node))) : std::move(node);
}

NodePtr ExpressionParser::Subscript(NodePtr object) {
  if (TakeOperator(".")) {
    if (word().kind == Word::Kind::kInteger) {
      NodePtr index = Make(NodeKind::kConstant);
      index->value = IntegerOf(Next().text);
      return Make(NodeKind::kItem, Children(std::move(object), std::move(index)));
    }
    NodePtr node = Make(NodeKind::kAttribute, Children(std::move(object)));
    node->name = ExpectName();
    return node;
  }
  ExpectOperator("[");
  std::vector<NodePtr> parts(1);
  if (!IsOperator(":")) parts[0] = Expression();
  if (TakeOperator("]")) {
    if (!parts[0]) Fail("a subscript is empty");
    return Make(NodeKind::kItem, Children(std::move(object), std::move(parts[0])));
  }
  while (TakeOperator(":")) {
    if (parts.size() == 3) Fail("a slice has three parts");
    parts.push_back(IsOperator(":") || IsOperator("]") ? nullptr : Expression());
  }
  ExpectOperator("]");
  parts.resize(3);
  return Make(NodeKind::kSlice, Children(std::move(object), std::move(parts[0]),
                                         std::move(parts[1]), std::move(parts[2])));
}

void ExpressionParser::Arguments(Node& call) {
  while (!TakeOperator(")")) {
    const bool named = word().kind == Word::Kind::kName &&
                       words_[at_ + 1].kind == Word::Kind::kOperator && words_[at_ + 1].text == "=";
    if (named) {
      std::string name = Next().text;
      Next();
      call.keywords.emplace_back(std::move(name), Expression());
    } else {
      if (!call.keywords.empty()) Fail("a plain argument stands behind a named one");
      call.children.push_back(Expression());
    }
    if (!IsOperator(")")) ExpectOperator(",");
  }
}

NodePtr ExpressionParser::ListOf(NodeKind kind, std::string_view close) {
  NodePtr node = Make(kind);
  while (!TakeOperator(close)) {
    node->children.push_back(Expression());
    if (!IsOperator(close)) ExpectOperator(",");
  }
  return Finish(std::move(node));
}

NodePtr ExpressionParser::DictLiteral() {
  NodePtr node = Make(NodeKind::kDict);
  while (!TakeOperator("}")) {
    node->children.push_back(Expression());
    ExpectOperator(":");
    node->children.push_back(Expression());
    if (!IsOperator("}")) ExpectOperator(",");
  }
  return Finish(std::move(node));
}

// ( expression ) or a tuple.
NodePtr ExpressionParser::Bracketed() {
  if (TakeOperator(")")) return Make(NodeKind::kTuple);
  NodePtr node = ExpressionOrTuple(true);
  ExpectOperator(")");
  return node;
}

NodePtr ExpressionParser::ExpressionOrTuple(bool conditional) {
  NodePtr first = Expression(conditional);
  if (!IsOperator(",")) return first;
  NodePtr tuple = Make(NodeKind::kTuple, Children(std::move(first)));
  while (TakeOperator(",")) {
    if (IsOperator(")") || IsOperator("=") || word().kind == Word::Kind::kBlockEnd ||
        word().kind == Word::Kind::kVariableEnd) {
      break;
    }
    tuple->children.push_back(Expression(conditional));
  }
  return Finish(std::move(tuple));
}

NodePtr ExpressionParser::Primary() {
  NodePtr node = Make(NodeKind::kConstant);
  switch (word().kind) {
    case Word::Kind::kName: {
      const std::string name = Next().text;
      if (name == "true" || name == "True") {
        node->value = true;
      } else if (name == "false" || name == "False") {
        node->value = false;
      } else if (name != "none" && name != "None") {
        node->kind = NodeKind::kName;
        node->name = name;
        node->symbol = SymbolOf(name);
      }
      return node;
    }
    case Word::Kind::kString: {
      std::string text;
      while (word().kind == Word::Kind::kString) text += Next().text;
      node->value = std::move(text);
      return node;
    }
    case Word::Kind::kInteger:
      node->value = IntegerOf(Next().text);
      return node;
    case Word::Kind::kFloat: {
      const std::string& text = Next().text;
      double value = 0;
      std::from_chars(text.data(), text.data() + text.size(), value);
      node->value = value;
      return node;
    }
    default:
      if (TakeOperator("(")) return Bracketed();
      if (TakeOperator("[")) return ListOf(NodeKind::kList, "]");
      if (TakeOperator("{")) return DictLiteral();
      Fail("unexpected " + Describe());
  }
}

NodePtr ExpressionParser::Target(bool with_attribute) {
  const auto name_target = [&] {
    NodePtr node = Make(NodeKind::kName);
    node->name = ExpectName();
    for (const char* constant : {"true", "false", "none", "True", "False", "None"}) {
      if (node->name == constant) Fail("cannot assign to '" + node->name + "'");
    }
    node->symbol = SymbolOf(node->name);
    return node;
  };
  if (TakeOperator("(")) {
    NodePtr inner = Target(false);
    ExpectOperator(")");
    return inner;
  }
  NodePtr first = name_target();
  if (with_attribute && TakeOperator(".")) {
    NodePtr node = Make(NodeKind::kAttribute, Children(std::move(first)));
    node->name = ExpectName();
    return node;
  }
  if (!IsOperator(",")) return first;
  NodePtr tuple = Make(NodeKind::kTuple, Children(std::move(first)));
  while (TakeOperator(",")) {
    if (word().kind == Word::Kind::kName && !IsName("in")) tuple->children.push_back(name_target());
  }
  return Finish(std::move(tuple));
}

}  // namespace weft::jinja
