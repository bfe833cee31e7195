// The words of a Jinja template. White space is already as trim_blocks, lstrip_blocks and the signs
// of the tags leave it, one line end at the end of the template is dropped, raw blocks are data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::jinja {

struct Word {
  enum class Kind : uint8_t {
    kData,           // text between tags
    kVariableBegin,  // {{
    kVariableEnd,
    kBlockBegin,  // {%
    kBlockEnd,
    kName,
    kString,  // escapes resolved
    kInteger,
    kFloat,
    kOperator,
    kEnd,  // of the template
  };
  Kind kind;
  std::string text;
  int line;  // from 1
};

// Throws Error(kCorrupt): "FILE: line 3: reason".
std::vector<Word> Lex(std::string_view source, const std::string& file);

}  // namespace weft::jinja
