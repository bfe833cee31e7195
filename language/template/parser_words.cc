// The words that the parser reads, and the nodes that it makes.
#include <algorithm>

#include "base/check.h"
#include "language/template/parser.h"

namespace weft::jinja {

void ExpressionParser::Fail(const std::string& reason) const {
  throw Error(ErrorCode::kCorrupt, file_ + ": line " + std::to_string(word().line) + ": " + reason);
}

bool ExpressionParser::Is(Word::Kind kind, std::string_view text) const {
  return word().kind == kind && word().text == text;
}

bool ExpressionParser::TakeOperator(std::string_view text) {
  const bool there = IsOperator(text);
  if (there) Next();
  return there;
}

bool ExpressionParser::TakeName(std::string_view text) {
  const bool there = IsName(text);
  if (there) Next();
  return there;
}

void ExpressionParser::ExpectOperator(std::string_view text) {
  if (!TakeOperator(text)) Fail("expected '" + std::string(text) + "', not " + Describe());
}

std::string ExpressionParser::ExpectName() {
  if (word().kind != Word::Kind::kName) Fail("expected a name, not " + Describe());
  return Next().text;
}

std::string ExpressionParser::Describe() const {
  switch (word().kind) {
    case Word::Kind::kEnd:
      return "the end of the template";
    case Word::Kind::kVariableEnd:
    case Word::Kind::kBlockEnd:
      return "the end of the tag";
    case Word::Kind::kData:
    case Word::Kind::kVariableBegin:
    case Word::Kind::kBlockBegin:
      return "what stands behind the tag";
    default:
      return "'" + word().text.substr(0, 60) + "'";
  }
}

int ExpressionParser::SymbolOf(const std::string& name) {
  const auto [entry, added] = symbol_of_.emplace(name, static_cast<int>(symbols_.size()));
  if (added) symbols_.push_back(name);
  return entry->second;
}

NodePtr ExpressionParser::Finish(NodePtr node) const {
  int depth = 0;
  for (const NodePtr& child : node->children) depth = std::max(depth, child ? child->depth : 0);
  for (const auto& [name, child] : node->keywords) depth = std::max(depth, child->depth);
  node->depth = depth + 1;
  if (node->depth > kMaxDepth) Fail("nested deeper than " + std::to_string(kMaxDepth) + " levels");
  return node;
}

NodePtr ExpressionParser::Make(NodeKind kind, std::vector<NodePtr> children) const {
  auto node = std::make_unique<Node>();
  node->kind = kind;
  node->line = word().line;
  node->children = std::move(children);
  return Finish(std::move(node));
}

}  // namespace weft::jinja
