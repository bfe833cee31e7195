#include "language/unicode.h"

#include <algorithm>
#include <array>
#include <utf8proc.h>

namespace weft {
namespace {

int Category(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

bool Between(char32_t code, char32_t first, char32_t last) {
  return code >= first && code <= last;
}

// The full case folding when it is longer than one code point, else empty.
std::u32string LongFolding(char32_t code) {
  std::array<utf8proc_int32_t, 16> folded{};
  int last = 0;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), folded.data(),
                                             static_cast<utf8proc_ssize_t>(folded.size()),
                                             UTF8PROC_CASEFOLD, &last);
  std::u32string out;
  if (count > 1 && count <= static_cast<utf8proc_ssize_t>(folded.size())) {
    for (utf8proc_ssize_t i = 0; i < count; ++i) {
      out += static_cast<char32_t>(folded[static_cast<size_t>(i)]);
    }
  }
  return out;
}

char32_t SimpleUpper(char32_t code) {
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code)));
}

int CombiningClass(char32_t code) {
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(code))->combining_class;
}

// The primary composite of a pair, or 0.
char32_t Compose(char32_t first, char32_t second) {
  std::array<utf8proc_int32_t, 2> pair = {static_cast<utf8proc_int32_t>(first),
                                          static_cast<utf8proc_int32_t>(second)};
  const auto length = utf8proc_normalize_utf32(
      pair.data(), 2, static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  return length == 1 ? static_cast<char32_t>(pair[0]) : 0;
}

// Text in decomposed form, marks in canonical order.
std::vector<NormalisedCodePoint> Decompose(std::string_view text, bool compatibility) {
  const int options = UTF8PROC_DECOMPOSE | UTF8PROC_STABLE | (compatibility ? UTF8PROC_COMPAT : 0);
  std::vector<NormalisedCodePoint> out;
  out.reserve(text.size());
  size_t starter = 0;  // where the pending run of marks begins
  const auto sort_marks = [&] {
    std::stable_sort(out.begin() + static_cast<std::ptrdiff_t>(starter), out.end(),
                     [](const auto& a, const auto& b) {
                       return CombiningClass(a.value) < CombiningClass(b.value);
                     });
  };
  std::array<utf8proc_int32_t, 32> parts{};  // no decomposition is longer than 18
  for (size_t position = 0; position < text.size();) {
    const CodePoint next = DecodeCodePoint(text, position);
    position += next.size;
    int last = 0;
    const auto count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(next.value), parts.data(),
                                static_cast<utf8proc_ssize_t>(parts.size()),
                                static_cast<utf8proc_option_t>(options), &last);
    for (utf8proc_ssize_t i = 0; i < count; ++i) {
      const auto part = static_cast<char32_t>(parts[static_cast<size_t>(i)]);
      if (CombiningClass(part) == 0) {
        sort_marks();
        starter = out.size() + 1;
      }
      out.push_back({part, i == 0 ? 1 : 0});
    }
  }
  sort_marks();
  return out;
}

// The canonical composition algorithm (Unicode 15, section 3.11), in place.
void Recompose(std::vector<NormalisedCodePoint>& text) {
  constexpr size_t kNone = SIZE_MAX;
  size_t starter = kNone, written = 0;
  int last_class = -1;  // of the mark before, -1 directly behind the starter
  for (const NormalisedCodePoint next : std::vector<NormalisedCodePoint>(text)) {
    const int combining = CombiningClass(next.value);
    if (starter != kNone && last_class < combining) {
      if (const char32_t composed = Compose(text[starter].value, next.value)) {
        text[starter].value = composed;
        text[starter].consumed += next.consumed;
        continue;
      }
    }
    if (combining == 0) {
      starter = written;
      last_class = -1;
    } else if (starter != kNone) {
      last_class = combining;
    }
    text[written++] = next;
  }
  text.resize(written);
}

}  // namespace

CharacterClass ClassOfWide(char32_t code) {
  const int category = Category(code);
  // Chinese characters of Unicode 15 and 15.1, which the system's tables may not know yet.
  if (category == UTF8PROC_CATEGORY_CN &&
      (code == 0x2B739 || Between(code, 0x2EBF0, 0x2EE5D) || Between(code, 0x31350, 0x323AF))) {
    return CharacterClass::kLetter;
  }
  if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) {
    return CharacterClass::kLetter;
  }
  if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO) {
    return CharacterClass::kNumber;
  }
  return IsWhiteSpace(code) ? CharacterClass::kSpace : CharacterClass::kOther;
}

bool IsLetter(char32_t code) {
  return ClassOf(code) == CharacterClass::kLetter;
}

bool IsNumber(char32_t code) {
  return ClassOf(code) == CharacterClass::kNumber;
}

bool IsWhiteSpace(char32_t code) {
  return Between(code, 9, 13) || code == ' ' || code == 0x85 || code == 0xA0 || code == 0x1680 ||
         Between(code, 0x2000, 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
         code == 0x205F || code == 0x3000;
}

bool IsPythonSpace(char32_t code) {
  return IsWhiteSpace(code) || Between(code, 0x1C, 0x1F);
}

bool IsPunctuation(char32_t code) {
  const int category = Category(code);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool IsMark(char32_t code) {
  const int category = Category(code);
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool IsNonSpacingMark(char32_t code) {
  return Category(code) == UTF8PROC_CATEGORY_MN;
}

bool IsControl(char32_t code) {
  return Category(code) >= UTF8PROC_CATEGORY_CC;
}

bool IsWord(char32_t code) {
  const int category = Category(code);
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) ||
         category == UTF8PROC_CATEGORY_PC || code == 0x200C || code == 0x200D ||
         // Symbols that have the property Alphabetic (Unicode 15, Other_Alphabetic).
         Between(code, 0x24B6, 0x24E9) || Between(code, 0x1F130, 0x1F149) ||
         Between(code, 0x1F150, 0x1F169) || Between(code, 0x1F170, 0x1F189);
}

bool IsPrintable(char32_t code) {
  const int category = Category(code);
  return code == ' ' || (category != UTF8PROC_CATEGORY_CN && category < UTF8PROC_CATEGORY_ZS);
}

bool IsDecimal(char32_t code) {
  return Category(code) == UTF8PROC_CATEGORY_ND;
}

bool IsUpper(char32_t code) {
  return Category(code) == UTF8PROC_CATEGORY_LU;
}

bool IsLower(char32_t code) {
  return Category(code) == UTF8PROC_CATEGORY_LL;
}

void AppendLower(char32_t code, std::u32string& out) {
  if (code == 0x130) {  // the one code point whose lower case has two
    out += U"i\u0307";
  } else {
    out += static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
  }
}

void AppendUpper(char32_t code, std::u32string& out) {
  const std::u32string folding = IsUpper(code) ? std::u32string() : LongFolding(code);
  if (folding.empty()) {
    out += SimpleUpper(code);
  } else {  // what folds to several code points has the upper case of each
    for (const char32_t part : folding) out += SimpleUpper(part);
  }
}

void AppendTitle(char32_t code, std::u32string& out) {
  const auto title = static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(code)));
  const std::u32string folding = title != code || Category(code) != UTF8PROC_CATEGORY_LL
                                     ? std::u32string()
                                     : LongFolding(code);
  if (folding.empty()) {
    out += title;
  } else {
    out += SimpleUpper(folding[0]);
    out += folding.substr(1);
  }
}

std::vector<NormalisedCodePoint> Normalise(std::string_view text, NormalForm form) {
  const bool compatibility = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  std::vector<NormalisedCodePoint> out = Decompose(text, compatibility);
  if (form == NormalForm::kNfc || form == NormalForm::kNfkc) Recompose(out);
  return out;
}

bool IsSurelyNormal(std::string_view text, NormalForm form) {
  if (IsAscii(text)) return true;
  for (size_t position = 0; position < text.size();) {
    const CodePoint next = DecodeCodePoint(text, position);
    position += next.size;
    // All that lies below the combining marks is composed already.
    if (next.value < (form == NormalForm::kNfc ? 0x300u : 0x80u)) continue;
    const auto* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(next.value));
    const bool hangul = Between(next.value, 0x1100, 0x11FF) || Between(next.value, 0xAC00, 0xD7A3);
    if (property->combining_class != 0 || property->decomp_seqindex != UINT16_MAX ||
        property->comb_index != UINT16_MAX || hangul) {
      return false;
    }
  }
  return true;
}

}  // namespace weft
