// The filters that work on one number or text; filters.cc has the others and the table of all.
#pragma once

#include <string>
#include <string_view>

#include "language/template/interpreter.h"

namespace weft::jinja {

// An optional argument of a filter.
int64_t IntegerOr(const Value* value, int64_t fallback, std::string_view what);
bool TruthyOr(const Value* value, bool fallback);

Value ToInteger(Interpreter& interpreter, const Value& value, const Arguments& arguments);
Value ToFloat(Interpreter& interpreter, const Value& value, const Arguments& arguments);
Value Round(Interpreter& interpreter, const Value& value, const Arguments& arguments);
Value FileSize(Interpreter& interpreter, const Value& value, const Arguments& arguments);
Value Indent(Interpreter& interpreter, const Value& value, const Arguments& arguments);
std::string TitleWords(std::string_view text);
Value WordCount(const std::string& text);

}  // namespace weft::jinja
