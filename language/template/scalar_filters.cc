#include "language/template/scalar_filters.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "language/template/text_functions.h"
#include "language/unicode.h"

namespace weft::jinja {
namespace {

// A number as Python's float() reads it from text, false when it is none.
bool ParseFloat(const std::string& text, double& number) {
  const std::string stripped = Strip(text, nullptr, StripSide::kBoth);
  if (stripped.empty() || stripped.find_first_of("xX") != std::string::npos) return false;
  char* end = nullptr;
  number = std::strtod(stripped.c_str(), &end);
  return end == stripped.c_str() + stripped.size();
}

}  // namespace

int64_t IntegerOr(const Value* value, int64_t fallback, std::string_view what) {
  return value ? IntegerOf(*value, what) : fallback;
}

bool TruthyOr(const Value* value, bool fallback) {
  return value ? value->Truthy() : fallback;
}

Value ToInteger(Interpreter&, const Value& value, const Arguments& arguments) {
  const auto bound = Bind(arguments, "int", {"default", "base"});
  const Value zero = 0;
  const Value& fallback = bound[0] ? *bound[0] : zero;
  const int64_t base = IntegerOr(bound[1], 10, "base of int");
  CheckDefined(value);
  Integer integer = 0;
  if (value.GetInteger(integer)) return integer;
  double number = 0;
  if (const auto* text = value.text()) {
    std::string digits = Strip(*text, nullptr, StripSide::kBoth);
    std::erase(digits, '_');
    if (base < 2 || base > 36 || digits.empty()) return fallback;
    char* end = nullptr;
    const long long parsed = std::strtoll(digits.c_str(), &end, static_cast<int>(base));
    if (end == digits.c_str() + digits.size()) return int64_t{parsed};
    if (!ParseFloat(*text, number)) return fallback;
  } else if (!value.GetNumber(number)) {
    return fallback;
  }
  if (!std::isfinite(number) || std::abs(number) > 1e38) return fallback;
  return static_cast<Integer>(number);
}

Value ToFloat(Interpreter&, const Value& value, const Arguments& arguments) {
  const auto bound = Bind(arguments, "float", {"default"});
  CheckDefined(value);
  double number = 0;
  if (value.GetNumber(number) || (value.text() && ParseFloat(*value.text(), number))) return number;
  return bound[0] ? *bound[0] : Value(0.0);
}

Value Round(Interpreter&, const Value& value, const Arguments& arguments) {
  const auto bound = Bind(arguments, "round", {"precision", "method"});
  const int64_t precision = IntegerOr(bound[0], 0, "precision of round");
  const std::string method = bound[1] ? TextOf(*bound[1], "method of round") : "common";
  double number = 0;
  if (!value.GetNumber(number)) Raise("round needs a number");
  if (precision < 0 || precision > 20) Raise("round takes a precision from 0 to 20");
  if (method == "common") {
    if (Integer integer = 0; value.GetInteger(integer)) return integer;
    char text[400];
    std::snprintf(text, sizeof(text), "%.*f", static_cast<int>(precision), number);
    return std::strtod(text, nullptr);
  }
  if (method != "ceil" && method != "floor") Raise("method must be common, ceil or floor");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  return (method == "ceil" ? std::ceil(number * scale) : std::floor(number * scale)) / scale;
}

Value Indent(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const auto bound = Bind(arguments, "indent", {"width", "first", "blank"});
  std::string space = "    ";
  if (bound[0] && bound[0]->text()) {
    space = *bound[0]->text();
  } else if (bound[0]) {
    space.assign(static_cast<size_t>(std::clamp<int64_t>(IntegerOf(*bound[0], "indent"), 0, 1000)),
                 ' ');
  }
  const auto lines = SplitLines(TextOf(value, "the operand of indent") + "\n");
  interpreter.budget().TakeBytes(lines.size() * space.size());
  std::string out = TruthyOr(bound[1], false) ? space : "";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += '\n';
    if (i > 0 && (!lines[i].empty() || TruthyOr(bound[2], false))) out += space;
    out += lines[i];
  }
  return interpreter.NewText(std::move(out));
}

// Each word with a capital, words as Jinja's title has them.
std::string TitleWords(std::string_view text) {
  std::string out, word;
  const auto flush = [&] {
    out +=
        word.empty() ? "" : Upper(std::string_view(word).substr(0, DecodeCodePoint(word, 0).size));
    if (!word.empty()) out += Lower(std::string_view(word).substr(DecodeCodePoint(word, 0).size));
    word.clear();
  };
  for (size_t position = 0; position < text.size();) {
    const CodePoint next = DecodeCodePoint(text, position);
    const std::string_view bytes = text.substr(position, next.size);
    const bool separates = IsPythonSpace(next.value) || next.value == '-' || next.value == '(' ||
                           next.value == '{' || next.value == '[' || next.value == '<';
    if (separates) {
      flush();
      out += bytes;
    } else {
      word += bytes;
    }
    position += next.size;
  }
  flush();
  return out;
}

Value FileSize(Interpreter&, const Value& value, const Arguments& arguments) {
  const auto bound = Bind(arguments, "filesizeformat", {"binary"});
  double bytes = 0;
  if (!value.GetNumber(bytes)) Raise("filesizeformat needs a number");
  const bool binary = TruthyOr(bound[0], false);
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) return "1 Byte";
  char text[64];
  if (bytes < base) {
    std::snprintf(text, sizeof(text), "%lld Bytes", static_cast<long long>(bytes));
    return text;
  }
  constexpr const char* kUnits = "kMGTPEZY";
  double unit = base;
  size_t i = 0;
  for (; i < 7 && bytes >= unit * base; ++i) unit *= base;
  const char name = binary && i == 0 ? 'K' : kUnits[i];
  std::snprintf(text, sizeof(text), "%.1f %c%sB", bytes / unit, name, binary ? "i" : "");
  return text;
}

Value WordCount(const std::string& text) {
  int64_t count = 0;
  bool inside = false;
  for (const char32_t code : ToCodePoints(text)) {
    count += IsWord(code) && !inside;
    inside = IsWord(code);
  }
  return count;
}

}  // namespace weft::jinja
