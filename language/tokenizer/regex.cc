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
  code_->code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &place, nullptr);
  if (!code_->code) {
    throw Error(ErrorCode::kCorrupt, Quoted(pattern) + " is wrong at byte " +
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
