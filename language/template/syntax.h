// The tree of a parsed template. One kind of node for statements and expressions; what its fields
// hold is said at its kind.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "language/template/value.h"

namespace weft::jinja {

struct Node;
using NodePtr = std::unique_ptr<Node>;

enum class NodeKind : uint8_t {
  // Statements. A body is a kBlock.
  kBlock,        // children
  kData,         // value: text
  kPrint,        // child 0
  kIf,           // children: condition, body, condition, body, ..., and the body of else at the end
  kFor,          // children: target, iterable, body, condition or null, else body or null
  kSet,          // children: target, expression
  kSetBlock,     // children: target, body, filter or null
  kWith,         // children: body, then target, expression in turn
  kMacro,        // name, symbol; parameters, children: body, then the defaults or nulls
  kCallBlock,    // children: call, a kMacro of name caller
  kFilterBlock,  // children: filter, body
  kGeneration,   // child 0: body
  kBreak,
  kContinue,
  // Expressions.
  kConstant,     // value
  kName,         // name, symbol
  kList,         // children
  kTuple,        // children
  kDict,         // children: key, value, key, value, ...
  kAttribute,    // child 0, name
  kItem,         // children: object, key
  kSlice,        // children: object, then start, stop, step, each perhaps null
  kCall,         // children: function, then arguments; keywords
  kFilter,       // name; children: operand (null in a filter block), then arguments; keywords
  kTest,         // name; children: operand, then arguments; keywords
  kNot,          // child 0
  kNegative,     // child 0
  kPositive,     // child 0
  kAnd,          // children 0 and 1
  kOr,           // children 0 and 1
  kConditional,  // children: condition, then, else or null
  kBinary,       // name: + - * / // % **; children 0 and 1
  kConcat,       // children
  kCompare,      // children: operands; names: == != < > <= >= in, "not in" between them
};

struct Node {
  NodeKind kind;
  int line = 0;
  int depth = 1;    // of the tree below
  int symbol = -1;  // of a name that is read or set
  std::string name;
  Value value;
  std::vector<NodePtr> children;
  std::vector<std::pair<std::string, NodePtr>> keywords;
  std::vector<std::string> names;  // operators of kCompare
  std::vector<int> parameters;     // symbols of kMacro
  std::vector<std::string> parameter_names;
};

// A parsed template and the names in it; a name's symbol is its index.
struct Syntax {
  NodePtr root;
  std::vector<std::string> symbols;
};

// Throws Error(kCorrupt) naming file and line. Refuses what would nest or recurse without bound.
Syntax Parse(std::string_view source, const std::string& file);

// Whether filters.cc and tests.cc have one of that name.
bool HasFilter(std::string_view name);
bool HasTest(std::string_view name);

}  // namespace weft::jinja
