#include "base/scalar.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

namespace weft {
namespace {

std::string Quoted(std::string_view text) {
  // A message shows the start of an endless value.
  return '"' + std::string(text.substr(0, 60)) + (text.size() > 60 ? "...\"" : "\"");
}

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

// A decimal number taken apart: digits * 10^exponent.
struct Decimal {
  bool valid = false;
  bool negative = false;
  bool leading_zero = false;  // 0256, which some read as octal
  std::string digits;         // without sign, point and underscores
  int64_t exponent = 0;
};

// Appends a run of digits, with single underscores between digits, and returns what follows it.
std::string_view TakeDigits(std::string_view text, std::string& digits) {
  size_t i = 0;
  for (; i < text.size(); ++i) {
    if (IsDigit(text[i])) {
      digits += text[i];
    } else if (text[i] != '_' || i == 0 || !IsDigit(text[i - 1]) || i + 1 == text.size() ||
               !IsDigit(text[i + 1])) {
      break;
    }
  }
  return text.substr(i);
}

Decimal ReadDecimal(std::string_view text) {
  Decimal number;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    number.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  number.leading_zero = text.size() > 1 && text[0] == '0' && (IsDigit(text[1]) || text[1] == '_');
  text = TakeDigits(text, number.digits);
  if (!text.empty() && text[0] == '.') {
    const size_t whole = number.digits.size();
    text = TakeDigits(text.substr(1), number.digits);
    number.exponent = -static_cast<int64_t>(number.digits.size() - whole);
  }
  if (number.digits.empty()) return number;
  if (!text.empty() && (text[0] == 'e' || text[0] == 'E')) {
    text.remove_prefix(1);
    if (text.size() > 1 && text[0] == '+' && IsDigit(text[1])) text.remove_prefix(1);
    int64_t exponent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exponent);
    // Beyond a million no double and no integer is left; the bound keeps sums from overflowing.
    if (error != std::errc() || std::abs(exponent) > 1000000) return number;
    number.exponent += exponent;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
  number.valid = text.empty();
  return number;
}

std::string LeadingZero(std::string_view text) {
  return Quoted(text) + " starts with a zero, which some read as octal: leave the zero out";
}

std::string NotWhole(std::string_view text) {
  return "must be a whole number, not " + Quoted(text);
}

// The absolute value of a whole number in magnitude and its sign in negative.
std::string ReadWhole(std::string_view text, uint64_t& magnitude, bool& negative) {
  std::string too_large = Quoted(text) + " needs more than 64 bits";
  negative = text.starts_with('-');
  const std::string_view unsigned_text = text.substr(negative || text.starts_with('+') ? 1 : 0);
  if (unsigned_text.starts_with("0x") || unsigned_text.starts_with("0X")) {
    const char* end = unsigned_text.data() + unsigned_text.size();
    const auto [stop, error] = std::from_chars(unsigned_text.data() + 2, end, magnitude, 16);
    if (error == std::errc::result_out_of_range) return too_large;
    return error == std::errc() && stop == end ? "" : NotWhole(text);
  }
  Decimal number = ReadDecimal(text);
  if (!number.valid) return NotWhole(text);
  if (number.leading_zero) return LeadingZero(text);
  while (number.exponent < 0 && number.digits.back() == '0' && number.digits.size() > 1) {
    number.digits.pop_back();
    ++number.exponent;
  }
  magnitude = 0;
  if (number.digits == std::string(number.digits.size(), '0')) return "";
  if (number.exponent < 0) return NotWhole(text);
  number.digits.erase(0, number.digits.find_first_not_of('0'));
  if (number.exponent > 20 || number.digits.size() > 20) return too_large;
  number.digits.append(static_cast<size_t>(number.exponent), '0');
  const char* end = number.digits.data() + number.digits.size();
  const auto [stop, error] = std::from_chars(number.digits.data(), end, magnitude);
  return error == std::errc() ? "" : too_large;
}

}  // namespace

std::string ParseNumber(std::string_view text, int64_t& value) {
  uint64_t magnitude = 0;
  bool negative = false;
  if (std::string reason = ReadWhole(text, magnitude, negative); !reason.empty()) return reason;
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (magnitude > kMost + negative) return Quoted(text) + " needs more than 64 bits";
  value = static_cast<int64_t>(negative ? -magnitude : magnitude);
  return "";
}

std::string ParseNumber(std::string_view text, uint64_t& value) {
  uint64_t magnitude = 0;
  bool negative = false;
  if (std::string reason = ReadWhole(text, magnitude, negative); !reason.empty()) return reason;
  if (negative && magnitude > 0) return "must not be negative, not " + Quoted(text);
  value = magnitude;
  return "";
}

std::string ParseNumber(std::string_view text, double& value) {
  for (const char* infinity : {".inf", ".Inf", ".INF", "+.inf", "-.inf", "-.Inf", "-.INF"}) {
    if (text == infinity) {
      value = std::numeric_limits<double>::infinity() * (text[0] == '-' ? -1 : 1);
      return "";
    }
  }
  const Decimal number = ReadDecimal(text);
  if (!number.valid) return "must be a number, not " + Quoted(text);
  if (number.leading_zero) return LeadingZero(text);
  const std::string plain =
      (number.negative ? "-" : "") + number.digits + "e" + std::to_string(number.exponent);
  double parsed = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), parsed);
  if (error != std::errc()) return Quoted(text) + " does not fit a 64-bit floating-point number";
  value = parsed;
  return "";
}

std::string ParseBool(std::string_view text, bool& value) {
  std::string lower(text.substr(0, 8));
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (text == "true" || text == "True" || text == "TRUE") {
    value = true;
  } else if (text == "false" || text == "False" || text == "FALSE") {
    value = false;
  } else if (lower == "on" || lower == "yes" || lower == "y" || lower == "1") {
    return "must be true or false: write true for " + Quoted(text);
  } else if (lower == "off" || lower == "no" || lower == "n" || lower == "0") {
    return "must be true or false: write false for " + Quoted(text);
  } else {
    return "must be true or false, not " + Quoted(text);
  }
  return "";
}

std::string NumberText(double value) {
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  if (std::isnan(value)) return ".nan";
  char text[64];
  const double magnitude = std::abs(value);
  const bool fixed = magnitude == 0 || (magnitude >= 1e-5 && magnitude < 1e15);
  return {text, std::to_chars(text, text + sizeof(text), value,
                              fixed ? std::chars_format::fixed : std::chars_format::scientific)
                    .ptr};
}

}  // namespace weft
