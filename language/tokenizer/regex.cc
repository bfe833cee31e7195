#include "language/tokenizer/regex.h"

#include <algorithm>

#include "base/check.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace weft {
namespace {

constexpr size_t kMaxPatternBytes = 1 << 16;
constexpr uint32_t kMaxSteps = 10'000'000;      // of one match
constexpr uint32_t kMaxHeapKibibytes = 20'000;  // of one match, in the interpreter

struct MatchDataFree {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

std::string Message(int error) {
  PCRE2_UCHAR text[256];
  return pcre2_get_error_message(error, text, sizeof(text)) < 0 ? "unknown error"
                                                                : reinterpret_cast<char*>(text);
}

std::string Quoted(const std::string& pattern) {
  return "the regular expression \"" + pattern.substr(0, 200) + "\"";
}

// What tokenizer files mean by \w and \s (Oniguruma's tables of Unicode) differs from PCRE2's.
// Each ends with a property, behind which a '-' is no range.
constexpr std::string_view kWord =
    R"(\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169})"
    R"(\x{1F170}-\x{1F189}\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc})";
constexpr std::string_view kSpace =
    R"(\x{09}-\x{0D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000})"
    R"(\p{Zl}\p{Zp})";

// The pattern with its \w, \W, \s and \S spelt out. Throws where the two engines read a class
// differently.
std::string Translate(const std::string& pattern) {
  const auto refuse = [&](size_t at, const char* what) {
    throw Error(ErrorCode::kCorrupt,
                Quoted(pattern) + " is not supported at byte " + std::to_string(at) + ": " + what);
  };
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char kind = pattern[++i];
      const bool word = kind == 'w' || kind == 'W';
      if (word || kind == 's' || kind == 'S') {
        const bool negated = kind == 'W' || kind == 'S';
        if (in_class && negated) refuse(i - 1, "a negated class inside of a class");
        out += in_class ? "" : negated ? "[^" : "[";
        out += word ? kWord : kSpace;
        out += in_class ? "" : "]";
      } else if (kind == 'h' || kind == 'H') {
        refuse(i - 1, "\\h");
      } else {
        out += c;
        out += kind;
      }
      continue;
    }
    if (in_class && c == '[' && pattern.compare(i, 2, "[:") != 0) {
      refuse(i, "a class inside of a class");
    }
    if (in_class && pattern.compare(i, 2, "&&") == 0) refuse(i, "an intersection of classes");
    out += c;
    if (in_class) {
      in_class = c != ']' || (i >= 2 && pattern[i - 1] == ':');
    } else if (c == '[') {
      in_class = true;
      // A bracket that begins the class stands for itself.
      if (pattern.compare(i + 1, 1, "^") == 0) out += pattern[++i];
      if (pattern.compare(i + 1, 1, "]") == 0) out += pattern[++i];
    }
  }
  return out;
}

}  // namespace

struct Regex::Code {
  std::string pattern;
  pcre2_code* code = nullptr;
  pcre2_match_context* limits = nullptr;
  ~Code() {
    pcre2_match_context_free(limits);
    pcre2_code_free(code);
  }
};

Regex::Regex(const std::string& pattern) : code_(std::make_unique<Code>()) {
  code_->pattern = pattern;
  if (pattern.size() > kMaxPatternBytes) {
    throw Error(ErrorCode::kCorrupt, Quoted(pattern) + " is longer than 65536 bytes");
  }
  int error = 0;
  PCRE2_SIZE place = 0;
  const std::string translated = Translate(pattern);
  code_->code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &place, nullptr);
  if (!code_->code) {
    throw Error(ErrorCode::kCorrupt, Quoted(translated) + " is wrong at byte " +
                                         std::to_string(place) + ": " + Message(error));
  }
  // Without JIT the interpreter matches, slower.
  (void)pcre2_jit_compile(code_->code, PCRE2_JIT_COMPLETE);
  code_->limits = pcre2_match_context_create(nullptr);
  pcre2_set_match_limit(code_->limits, kMaxSteps);
  pcre2_set_heap_limit(code_->limits, kMaxHeapKibibytes);
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

void Regex::Find(std::string_view text, Piece piece, std::vector<Match>& out) const {
  const std::unique_ptr<pcre2_match_data, MatchDataFree> data(
      pcre2_match_data_create_from_pattern(code_->code, nullptr));
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data()) + piece.begin;
  const uint32_t length = piece.end - piece.begin;
  uint32_t position = 0, gap = 0;
  uint32_t options = PCRE2_NO_UTF_CHECK;
  const auto add = [&](uint32_t begin, uint32_t end, bool matches) {
    out.push_back({{piece.begin + begin, piece.begin + end}, matches});
  };
  while (position <= length) {
    int found =
        pcre2_match(code_->code, subject, length, position, options, data.get(), code_->limits);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) {  // the interpreter keeps its stack on the heap
      found = pcre2_match(code_->code, subject, length, position, options | PCRE2_NO_JIT,
                          data.get(), code_->limits);
    }
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0) {
      throw Error(ErrorCode::kInvalidArgument,
                  Quoted(code_->pattern) + " gives up on a text of " + std::to_string(length) +
                      " bytes at byte " + std::to_string(position) + ": " + Message(found));
    }
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data.get());
    const auto begin = static_cast<uint32_t>(ends[0]), end = static_cast<uint32_t>(ends[1]);
    if (end <= begin) {  // nothing to cut out; look on behind the next code point
      position = std::max(begin, position) + 1;
      while (position < length && (subject[position] & 0xC0) == 0x80) ++position;
      if (begin == end && begin > gap && begin < length) {
        add(gap, begin, false);  // an empty match still separates
        gap = begin;
      }
      continue;
    }
    if (gap < begin) add(gap, begin, false);
    add(begin, end, true);
    position = gap = end;
  }
  if (gap < length) add(gap, length, false);
}

}  // namespace weft
