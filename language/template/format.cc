// Python's two ways to format: "%s" % values and "{}".format(values).
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "language/template/interpreter.h"
#include "language/unicode.h"

namespace weft::jinja {
namespace {

constexpr int64_t kMaxWidth = 10'000;

struct Spec {
  char align = 0;  // < > = ^, or 0
  std::string fill = " ";
  bool plus = false, space = false, alternate = false, group = false;
  bool given = false;  // "{:...}" with something behind the colon
  int64_t width = 0, precision = -1;
  char type = 0;
};

// Digits at text[at, ...), at most kMaxWidth.
int64_t ReadNumber(std::string_view text, size_t& at) {
  int64_t value = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    value = value * 10 + (text[at] - '0');
    if (value > kMaxWidth) Raise("a width or precision is larger than 10000");
  }
  return value;
}

std::string Pad(std::string text, const Spec& spec, char fallback) {
  const auto size = static_cast<int64_t>(CountCodePoints(text));
  const int64_t missing = std::max<int64_t>(spec.width - size, 0);
  const char align = spec.align ? spec.align : fallback;
  const int64_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  std::string before, behind;
  for (int64_t i = 0; i < missing; ++i) (i < left ? before : behind) += spec.fill;
  const bool sign = align == '=' && !text.empty() && (text[0] == '-' || text[0] == '+');
  if (sign) return text.substr(0, 1) + before + text.substr(1);
  return before + text + behind;
}

// The sign and digits of a number, thousands apart when asked.
std::string Signed(bool negative, std::string digits, const Spec& spec) {
  if (spec.group) {
    const size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
    for (size_t at = whole; at > 3; at -= 3) digits.insert(at - 3, ",");
  }
  return (negative ? "-" : spec.plus ? "+" : spec.space ? " " : "") + digits;
}

std::string IntegerDigits(Integer value, char type, bool alternate) {
  const int base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  std::string digits;
  __extension__ unsigned __int128 rest =
      value < 0 ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  const char* letters = type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
  do {
    digits += letters[static_cast<size_t>(rest % static_cast<unsigned>(base))];
    rest /= static_cast<unsigned>(base);
  } while (rest > 0);
  if (alternate && base != 10) digits += std::string(1, type) + "0";
  std::ranges::reverse(digits);
  return digits;
}

std::string FloatDigits(double number, const Spec& spec, char type) {
  char format[16], text[11'000];
  std::snprintf(format, sizeof(format), "%%%s.*%c", spec.alternate ? "#" : "", type);
  const int64_t precision = spec.precision < 0 ? 6 : spec.precision;
  std::snprintf(text, sizeof(text), format, static_cast<int>(precision), std::abs(number));
  return text;
}

// One value by a format; text is what `s` stands for.
std::string FormatValue(Interpreter& interpreter, const Value& value, const Spec& spec) {
  interpreter.budget().TakeBytes(static_cast<uint64_t>(spec.width) +
                                 static_cast<uint64_t>(std::max<int64_t>(spec.precision, 0)));
  const char type = spec.type;
  Integer integer = 0;
  double number = 0;
  const bool is_integer = value.GetInteger(integer);
  const bool wants_integer = std::string_view("dioxXb").find(type) != std::string_view::npos;
  const bool wants_float = std::string_view("eEfFgG%").find(type) != std::string_view::npos;
  if (type == 'c') {
    std::string text = value.text() ? *value.text() : std::string();
    if (is_integer && integer >= 0 && integer <= 0x10FFFF) {
      AppendCodePoint(static_cast<char32_t>(integer), text);
    }
    if (CountCodePoints(text) != 1) Raise("%c requires int or char");
    return Pad(text, spec, '<');
  }
  if (type != 0 && wants_integer) {
    const auto* real = value.As<double>();
    if (real && type == 'd' && std::abs(*real) < 1e38) {
      integer = static_cast<Integer>(*real);
    } else if (!is_integer) {
      Raise(std::string("%") + type + " format: a real number is required, not " +
            value.TypeName());
    }
    return Pad(Signed(integer < 0, IntegerDigits(integer, type, spec.alternate), spec), spec, '>');
  }
  if (type != 0 && wants_float) {
    if (!value.GetNumber(number)) {
      Raise(std::string("must be real number, not ") + value.TypeName());
    }
    const bool percent = type == '%';
    std::string digits = FloatDigits(percent ? number * 100 : number, spec, percent ? 'f' : type);
    if (percent) digits += '%';
    return Pad(Signed(std::signbit(number) && !std::isnan(number), digits, spec), spec, '>');
  }
  if (type != 0 && type != 's') Raise(std::string("unsupported format character '") + type + "'");
  if (type == 0 && value.GetNumber(number) && (spec.given || !value.As<bool>())) {
    if (is_integer && spec.precision >= 0) {
      Raise("Precision not allowed in integer format specifier");
    }
    std::string digits =
        value.As<double>() ? FloatText(std::abs(number)) : IntegerDigits(integer, 'd', false);
    if (value.As<double>() && spec.precision >= 0) digits = FloatDigits(number, spec, 'g');
    return Pad(Signed(std::signbit(number) || integer < 0, digits, spec), spec, '>');
  }
  if (spec.given && type == 0 && !value.text()) {
    Raise(std::string("unsupported format string passed to ") + value.TypeName() + ".__format__");
  }
  if (spec.given && type == 0 && (spec.plus || spec.space || spec.alternate || spec.group)) {
    Raise("the format specifier of a text may have no sign, '#' or ','");
  }
  std::string text = interpreter.TextOf(value);
  if (spec.precision >= 0) {
    size_t end = 0;
    for (int64_t i = 0; i < spec.precision && end < text.size(); ++i) {
      end += DecodeCodePoint(text, end).size;
    }
    text.resize(end);
  }
  Spec left = spec;
  if (left.align == '=') left.align = '<';  // zeros of {:05}
  return Pad(std::move(text), left, '<');
}

// [[fill]align][sign][#][0][width][,][.precision][type]
Spec ReadSpec(std::string_view text) {
  Spec spec;
  spec.given = !text.empty();
  size_t at = 0;
  const auto is_align = [&](size_t i) {
    return i < text.size() && std::string_view("<>=^").find(text[i]) != std::string_view::npos;
  };
  if (!text.empty()) {
    const uint32_t size = DecodeCodePoint(text, 0).size;
    if (is_align(size)) {
      spec.fill = text.substr(0, size);
      at = size;
    }
    if (is_align(at)) spec.align = text[at++];
  }
  const auto take = [&](char c) {
    const bool there = at < text.size() && text[at] == c;
    at += there;
    return there;
  };
  spec.plus = take('+');
  if (!spec.plus && !take('-')) spec.space = take(' ');
  spec.alternate = take('#');
  if (take('0') && !spec.align) {
    spec.fill = "0";
    spec.align = '=';
  }
  spec.width = ReadNumber(text, at);
  spec.group = take(',');
  if (take('.')) spec.precision = ReadNumber(text, at);
  if (at < text.size()) spec.type = text[at++];
  if (at != text.size()) Raise("Invalid format specifier '" + std::string(text) + "'");
  return spec;
}

// The value of a replacement field: "", "0", "name", with .attributes and [items] behind.
Value FieldValue(Interpreter& interpreter, std::string_view field, const Arguments& arguments,
                 size_t& next) {
  const size_t end = std::min(field.find_first_of(".["), field.size());
  const std::string first(field.substr(0, end));
  Value value;
  size_t at = 0;
  if (first.empty() || (first[0] >= '0' && first[0] <= '9')) {
    const auto index = first.empty() ? next++ : static_cast<size_t>(ReadNumber(first, at));
    if (index >= arguments.positional.size()) {
      Raise("Replacement index " + std::to_string(index) + " out of range for positional args");
    }
    value = arguments.positional[index];
  } else {
    const auto found =
        std::ranges::find(arguments.keywords, first, &std::pair<std::string, Value>::first);
    if (found == arguments.keywords.end()) Raise("format has no argument '" + first + "'");
    value = found->second;
  }
  for (at = end; at < field.size();) {
    const bool item = field[at] == '[';
    const size_t begin = at + 1;
    at = std::min(item ? field.find(']', begin) : field.find_first_of(".[", begin), field.size());
    const std::string name(field.substr(begin, at - begin));
    size_t digits = 0;
    const bool index = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
    value = item ? interpreter.Item(value, index ? Value(ReadNumber(name, digits)) : Value(name))
                 : interpreter.Attribute(value, name);
    if (item) ++at;
  }
  return value;
}

}  // namespace

std::string FormatPercent(Interpreter& interpreter, const std::string& format, const Value& value) {
  std::string out;
  size_t used = 0;
  const auto next = [&]() -> Value {
    if (!value.IsTuple()) {
      if (used++ > 0) Raise("not enough arguments for format string");
      return value;
    }
    if (used >= value.items()->size()) Raise("not enough arguments for format string");
    return (*value.items())[used++];
  };
  for (size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      out += format[at++];
      continue;
    }
    ++at;
    Spec spec;
    Value named;
    bool has_name = false;
    if (at < format.size() && format[at] == '(') {
      const size_t end = format.find(')', at);
      if (end == std::string::npos || !value.members()) Raise("format requires a mapping");
      const Value* found = FindMember(*value.members(), format.substr(at + 1, end - at - 1));
      if (!found) Raise("the mapping lacks '" + format.substr(at + 1, end - at - 1) + "'");
      named = *found;
      has_name = true;
      at = end + 1;
    }
    for (;
         at < format.size() && std::string_view("-+ #0").find(format[at]) != std::string_view::npos;
         ++at) {
      if (format[at] == '-') spec.align = '<';
      if (format[at] == '+') spec.plus = true;
      if (format[at] == ' ') spec.space = true;
      if (format[at] == '#') spec.alternate = true;
      if (format[at] == '0' && !spec.align) {
        spec.fill = "0";
        spec.align = '=';
      }
    }
    if (spec.align == '<') spec.fill = " ";
    spec.width = ReadNumber(format, at);
    if (at < format.size() && format[at] == '.') spec.precision = ReadNumber(format, ++at);
    if (at == format.size()) Raise("incomplete format");
    const char type = format[at++];
    if (type == '%') {
      out += '%';
      continue;
    }
    Value item = has_name ? named : next();
    spec.type = type == 'i' || type == 'u' ? 'd' : type;
    if (type == 'r' || type == 'a') {
      item = Repr(item, interpreter.budget());
      spec.type = 's';
    }
    if (spec.type == 's') {
      item = interpreter.TextOf(item);
      if (!spec.align) spec.align = '>';
      if (spec.align == '=') spec.fill = " ", spec.align = '>';
    }
    out += FormatValue(interpreter, item, spec);
  }
  const bool all = value.IsTuple() ? used == value.items()->size()
                                   : used > 0 || value.members() || value.items();
  if (!all) Raise("not all arguments converted during string formatting");
  return out;
}

std::string FormatBraces(Interpreter& interpreter, const std::string& format,
                         const Arguments& arguments) {
  std::string out;
  size_t next = 0;
  for (size_t at = 0; at < format.size();) {
    const char c = format[at];
    if (c != '{' && c != '}') {
      out += format[at++];
      continue;
    }
    if (at + 1 < format.size() && format[at + 1] == c) {
      out += c;
      at += 2;
      continue;
    }
    const size_t end = format.find('}', at);
    if (c == '}' || end == std::string::npos) Raise("a single brace stands in the format string");
    std::string_view field = std::string_view(format).substr(at + 1, end - at - 1);
    if (field.find('{') != std::string_view::npos)
      Raise("nested replacement fields are not supported");
    const size_t colon = std::min(field.find(':'), field.size());
    const Spec spec = ReadSpec(colon < field.size() ? field.substr(colon + 1) : "");
    field = field.substr(0, colon);
    const size_t mark = std::min(field.find('!'), field.size());
    Value value = FieldValue(interpreter, field.substr(0, mark), arguments, next);
    if (mark < field.size()) {
      const std::string_view conversion = field.substr(mark);
      if (conversion != "!r" && conversion != "!s") Raise("the conversion must be !r or !s");
      value = conversion == "!r" ? Value(Repr(value, interpreter.budget()))
                                 : Value(interpreter.TextOf(value));
    }
    out += FormatValue(interpreter, value, spec);
    at = end + 1;
  }
  return out;
}

}  // namespace weft::jinja
