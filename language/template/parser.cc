#include "language/template/parser.h"

#include <algorithm>

namespace weft::jinja {
namespace {

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Syntax Document() {
    Syntax syntax;
    syntax.root = Body({});
    syntax.symbols = std::move(symbols_);
    return syntax;
  }

 private:
  struct Open {
    Open(Parser& parser_in, std::string tag) : parser(parser_in) {
      parser.tags_.push_back(std::move(tag));
      if (++parser.open_ > kMaxDepth) {
        parser.Fail("nested deeper than " + std::to_string(kMaxDepth) + " levels");
      }
    }
    ~Open() {
      parser.tags_.pop_back();
      --parser.open_;
    }
    Parser& parser;
  };

  void ExpectBlockEnd() {
    if (word().kind != Word::Kind::kBlockEnd)
      Fail("expected the end of the tag, not " + Describe());
    Next();
  }

  // Statements up to a tag of one of these names, which is consumed to behind its name.
  NodePtr Body(std::initializer_list<std::string_view> ends) {
    NodePtr block = Make(NodeKind::kBlock);
    while (true) {
      switch (word().kind) {
        case Word::Kind::kEnd: {
          if (ends.size() == 0) return Finish(std::move(block));
          std::string wanted;
          for (const auto name : ends) {
            wanted += (wanted.empty() ? "'" : " or '") + std::string(name) + "'";
          }
          Fail("Unexpected end of template. Jinja was looking for the following tags: " + wanted +
               ". The innermost block that needs to be closed is '" + tags_.back() + "'.");
        }
        case Word::Kind::kData: {
          NodePtr data = Make(NodeKind::kData);
          data->value = Next().text;
          block->children.push_back(std::move(data));
          break;
        }
        case Word::Kind::kVariableBegin: {
          Next();
          NodePtr print = Make(NodeKind::kPrint);
          print->children.push_back(ExpressionOrTuple(true));
          if (word().kind != Word::Kind::kVariableEnd) {
            Fail("expected the end of the tag, not " + Describe());
          }
          Next();
          block->children.push_back(Finish(std::move(print)));
          break;
        }
        default: {
          Next();  // {%
          if (word().kind != Word::Kind::kName) Fail("expected the name of a tag");
          if (std::ranges::find(ends, word().text) != ends.end()) return Finish(std::move(block));
          block->children.push_back(Statement());
        }
      }
    }
  }

  // A body whose closing tag has no other name.
  NodePtr BodyUpTo(std::string_view end) {
    NodePtr body = Body({end});
    Next();
    ExpectBlockEnd();
    return body;
  }

  NodePtr Statement() {
    const int line = word().line;
    const std::string tag = Next().text;
    const Open open(*this, tag);
    NodePtr node = Make(NodeKind::kBlock);
    node->line = line;
    if (tag == "if") {
      If(*node);
    } else if (tag == "for") {
      For(*node);
    } else if (tag == "set") {
      Set(*node);
    } else if (tag == "with") {
      With(*node);
    } else if (tag == "macro") {
      Macro(*node);
    } else if (tag == "call") {
      Call(*node);
    } else if (tag == "filter") {
      node->kind = NodeKind::kFilterBlock;
      node->children.push_back(Filters(nullptr));
      ExpectBlockEnd();
      node->children.push_back(BodyUpTo("endfilter"));
    } else if (tag == "generation") {
      node->kind = NodeKind::kGeneration;
      ExpectBlockEnd();
      node->children.push_back(BodyUpTo("endgeneration"));
    } else if (tag == "print") {
      node->kind = NodeKind::kPrint;
      node->children.push_back(ExpressionOrTuple(true));
      ExpectBlockEnd();
    } else if (tag == "break" || tag == "continue") {
      if (loops_ == 0) Fail(tag + " stands outside of a loop");
      node->kind = tag == "break" ? NodeKind::kBreak : NodeKind::kContinue;
      ExpectBlockEnd();
    } else if (tag == "include" || tag == "import" || tag == "from" || tag == "extends") {
      Fail(tag + " is not supported: a chat template stands alone");
    } else {
      Fail("Encountered unknown tag '" + tag + "'.");
    }
    return Finish(std::move(node));
  }

  void If(Node& node) {
    node.kind = NodeKind::kIf;
    while (true) {
      node.children.push_back(ExpressionOrTuple(false));
      ExpectBlockEnd();
      node.children.push_back(Body({"elif", "else", "endif"}));
      const std::string end = Next().text;
      if (end == "elif") continue;
      ExpectBlockEnd();
      if (end == "else") node.children.push_back(BodyUpTo("endif"));
      return;
    }
  }

  void For(Node& node) {
    node.kind = NodeKind::kFor;
    NodePtr target = Target(false);
    if (!TakeName("in")) Fail("expected 'in', not " + Describe());
    NodePtr iterable = ExpressionOrTuple(false);
    NodePtr condition = TakeName("if") ? Expression() : nullptr;
    if (IsName("recursive")) Fail("recursive loops are not supported");
    ExpectBlockEnd();
    SymbolOf("loop");
    ++loops_;
    NodePtr body = Body({"endfor", "else"});
    --loops_;
    NodePtr otherwise;
    const bool has_else = Next().text == "else";
    ExpectBlockEnd();
    if (has_else) otherwise = BodyUpTo("endfor");
    node.children.push_back(std::move(target));
    node.children.push_back(std::move(iterable));
    node.children.push_back(std::move(body));
    node.children.push_back(std::move(condition));
    node.children.push_back(std::move(otherwise));
  }

  void Set(Node& node) {
    node.kind = NodeKind::kSet;
    node.children.push_back(Target(true));
    if (TakeOperator("=")) {
      node.children.push_back(ExpressionOrTuple(true));
      ExpectBlockEnd();
      return;
    }
    node.kind = NodeKind::kSetBlock;
    NodePtr filters = TakeOperator("|") ? Filters(nullptr) : nullptr;
    ExpectBlockEnd();
    node.children.push_back(BodyUpTo("endset"));
    node.children.push_back(std::move(filters));
  }

  void With(Node& node) {
    node.kind = NodeKind::kWith;
    std::vector<NodePtr> settings;
    while (word().kind != Word::Kind::kBlockEnd) {
      if (!settings.empty()) ExpectOperator(",");
      NodePtr target = Make(NodeKind::kName);
      target->name = ExpectName();
      target->symbol = SymbolOf(target->name);
      settings.push_back(std::move(target));
      ExpectOperator("=");
      settings.push_back(Expression());
    }
    ExpectBlockEnd();
    node.children.push_back(BodyUpTo("endwith"));
    for (NodePtr& setting : settings) node.children.push_back(std::move(setting));
  }

  // The parameters of a macro, behind the opening bracket; returns their defaults or nulls.
  std::vector<NodePtr> Parameters(Node& macro) {
    std::vector<NodePtr> defaults;
    while (!TakeOperator(")")) {
      std::string name = ExpectName();
      macro.parameters.push_back(SymbolOf(name));
      macro.parameter_names.push_back(std::move(name));
      defaults.push_back(TakeOperator("=") ? Expression() : nullptr);
      if (!IsOperator(")")) ExpectOperator(",");
    }
    return defaults;
  }

  void MacroBody(Node& macro, std::vector<NodePtr> defaults, std::string_view end) {
    ExpectBlockEnd();
    const int loops = loops_;
    loops_ = 0;  // break and continue do not reach out of a macro
    macro.children.push_back(BodyUpTo(end));
    loops_ = loops;
    for (NodePtr& value : defaults) macro.children.push_back(std::move(value));
  }

  void Macro(Node& node) {
    node.kind = NodeKind::kMacro;
    node.name = ExpectName();
    node.symbol = SymbolOf(node.name);
    SymbolOf("caller");
    ExpectOperator("(");
    MacroBody(node, Parameters(node), "endmacro");
  }

  // {% call(parameters) function(arguments) %}
  void Call(Node& node) {
    node.kind = NodeKind::kCallBlock;
    NodePtr caller = Make(NodeKind::kMacro);
    caller->name = "caller";
    caller->symbol = SymbolOf("caller");
    std::vector<NodePtr> defaults;
    if (TakeOperator("(")) defaults = Parameters(*caller);
    NodePtr call = Expression();
    if (call->kind != NodeKind::kCall) Fail("a call block needs a call");
    MacroBody(*caller, std::move(defaults), "endcall");
    node.children.push_back(std::move(call));
    node.children.push_back(Finish(std::move(caller)));
  }

  std::vector<std::string> tags_;  // open ones
  int loops_ = 0;
};

}  // namespace

Syntax Parse(std::string_view source, const std::string& file) {
  return Parser(source, file).Document();
}

}  // namespace weft::jinja
