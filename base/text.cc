#include "base/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>

namespace weft {
namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

// Three significant digits and the largest unit that keeps the number at or above 1.
std::string Scaled(double value, double base, const std::array<const char*, 5>& units) {
  size_t unit = 0;
  // 999.5 units would print as "1000": it belongs to the next one.
  while (unit + 1 < units.size() && std::abs(value) >= (unit == 0 ? base : base - 0.5)) {
    value /= base;
    ++unit;
  }
  const double magnitude = std::abs(value);
  const bool whole = magnitude >= 100 || (unit == 0 && value == std::floor(value));
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f%s",
                whole             ? 0
                : magnitude >= 10 ? 1
                                  : 2,
                value, units[unit]);
  return text;
}

}  // namespace

std::string DidYouMean(std::string_view word, const std::vector<std::string>& choices) {
  // Words longer than any key are not typing mistakes, and the distance costs their product.
  if (word.empty() || word.size() > 64) return "";
  const std::string lower = Lower(word);
  const std::string* nearest = nullptr;
  size_t least = 2 + word.size() / 4;  // a distance must be below this to count as near
  for (const std::string& choice : choices) {
    const std::string candidate = Lower(choice);
    size_t distance = EditDistance(lower, candidate);
    // "rate" for "learning_rate": nearer than any third slip of the keyboard.
    if (lower.size() >= 3 && candidate.find(lower) != std::string::npos) {
      distance = std::min<size_t>(distance, 2);
    }
    if (distance < least) {
      least = distance;
      nearest = &choice;
    }
  }
  return nearest == nullptr ? "" : "; did you mean \"" + *nearest + "\"?";
}

std::string Join(const std::vector<std::string>& words, std::string_view separator) {
  std::string joined;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) joined += separator;
    joined += words[i];
  }
  return joined;
}

uint64_t Fnv1a(std::string_view bytes, uint64_t seed) {
  uint64_t hash = seed;
  for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 1099511628211ULL;
  return hash;
}

std::string HumanCount(double value) {
  return Scaled(value, 1000, {"", "k", "M", "G", "T"});
}

std::string HumanBytes(double bytes) {
  return Scaled(bytes, 1024, {" B", " KiB", " MiB", " GiB", " TiB"});
}

std::string HumanSeconds(double seconds) {
  char text[64];
  if (!(std::abs(seconds) < 1e9)) return "forever";  // also NaN: no rate is known
  if (seconds < 9.95) {
    std::snprintf(text, sizeof(text), "%.1fs", seconds);
    return text;
  }
  const auto total = static_cast<int64_t>(seconds + 0.5);
  const auto days = static_cast<long>(total / 86400), hours = static_cast<long>(total / 3600 % 24),
             minutes = static_cast<long>(total / 60 % 60), rest = static_cast<long>(total % 60);
  if (days > 0) {
    std::snprintf(text, sizeof(text), "%ldd %02ldh", days, hours);
  } else if (hours > 0) {
    std::snprintf(text, sizeof(text), "%ldh %02ldm", hours, minutes);
  } else if (minutes > 0) {
    std::snprintf(text, sizeof(text), "%ldm %02lds", minutes, rest);
  } else {
    std::snprintf(text, sizeof(text), "%lds", rest);
  }
  return text;
}

}  // namespace weft
