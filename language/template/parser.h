// Recursive descent over the words of a template, after Jinja's grammar and precedences.
// expression_parser.cc has the expressions, parser.cc the statements.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "language/template/lexer.h"
#include "language/template/syntax.h"

namespace weft::jinja {

class ExpressionParser {
 public:
  ExpressionParser(std::string_view source, const std::string& file)
      : file_(file), words_(Lex(source, file)) {}

 protected:
  static constexpr int kMaxDepth = 250;

  [[noreturn]] void Fail(const std::string& reason) const;
  const Word& word() const { return words_[at_]; }
  const Word& Next() { return words_[at_++]; }  // never called at the end
  bool Is(Word::Kind kind, std::string_view text) const;
  bool IsOperator(std::string_view text) const { return Is(Word::Kind::kOperator, text); }
  bool IsName(std::string_view text) const { return Is(Word::Kind::kName, text); }
  bool TakeOperator(std::string_view text);
  bool TakeName(std::string_view text);
  void ExpectOperator(std::string_view text);
  std::string ExpectName();
  std::string Describe() const;  // the word at hand, for messages
  int SymbolOf(const std::string& name);

  // Checks the depth of the tree that the node closes.
  NodePtr Make(NodeKind kind, std::vector<NodePtr> children = {}) const;
  NodePtr Finish(NodePtr node) const;

  NodePtr Expression(bool conditional = true);
  // An expression, or several with commas between as a tuple.
  NodePtr ExpressionOrTuple(bool conditional);
  NodePtr Target(bool with_attribute);  // names to set
  NodePtr Filters(NodePtr operand);     // | name(...) in a row, at least one
  void Arguments(Node& call);           // behind the opening bracket
  NodePtr Primary();
  NodePtr Postfix(NodePtr node);

  const std::string& file_;
  std::vector<Word> words_;
  size_t at_ = 0;
  int open_ = 0;  // calls of Expression, Unary and statements inside one another
  std::vector<std::string> symbols_;

 private:
  NodePtr Or();
  NodePtr And();
  NodePtr Not();
  NodePtr Compare();
  NodePtr Sum();
  NodePtr Concat();
  NodePtr Product();
  NodePtr Power();
  NodePtr Unary(bool with_filters);
  NodePtr FiltersAndTests(NodePtr node);
  NodePtr Filter(NodePtr operand);
  NodePtr Test(NodePtr operand);
  NodePtr Subscript(NodePtr object);
  NodePtr ListOf(NodeKind kind, std::string_view close);
  NodePtr DictLiteral();
  NodePtr Bracketed();
  NodePtr Binary(const std::string& name, NodePtr left, NodePtr right) const;

  std::map<std::string, int, std::less<>> symbol_of_;
};

}  // namespace weft::jinja
