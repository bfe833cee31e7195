#include "language/tokenizer/normaliser.h"

#include <algorithm>

#include "language/unicode.h"

namespace weft {
namespace {

// Calls visit(code point, begin, end) for each of the text.
template <class Visit>
void ForEachCodePoint(std::string_view text, Visit visit) {
  for (size_t position = 0; position < text.size();) {
    const CodePoint next = DecodeCodePoint(text, position);
    visit(next.value, position, position + next.size);
    position += next.size;
  }
}

template <class Keep>
void Filter(AlignedText& text, Keep keep) {
  bool all = true;
  ForEachCodePoint(text.text(), [&](char32_t code, size_t, size_t) { all &= keep(code); });
  if (all) return;
  text.Begin();
  ForEachCodePoint(text.text(), [&](char32_t code, size_t begin, size_t end) {
    if (keep(code)) text.Keep(begin, end);
  });
  text.Commit();
}

void ToNormalForm(NormalForm form, AlignedText& text) {
  const std::string_view old = text.text();
  if (IsSurelyNormal(old, form)) return;
  text.Begin();
  size_t position = 0;  // behind the code points used up so far
  for (const NormalisedCodePoint& next : Normalise(old, form)) {
    const size_t begin = position;
    for (int32_t i = 0; i < next.consumed; ++i) position += DecodeCodePoint(old, position).size;
    const TextSpan source = next.consumed > 0 ? text.SourceOfByte(begin)
                            : begin > 0       ? text.SourceOfByte(begin - 1)
                                              : TextSpan{};
    text.Put(next.value, source);
  }
  text.Commit();
}

void Lowercase(AlignedText& text) {
  const std::string_view old = text.text();
  const auto changes = [](char32_t code) {
    std::u32string lower;
    AppendLower(code, lower);
    return lower.size() != 1 || lower[0] != code;
  };
  bool any = false;
  ForEachCodePoint(old, [&](char32_t code, size_t, size_t) {
    any |= code < 128 ? code >= 'A' && code <= 'Z' : changes(code);
  });
  if (!any) return;
  text.Begin();
  std::u32string lower;
  ForEachCodePoint(old, [&](char32_t code, size_t begin, size_t) {
    lower.clear();
    AppendLower(code, lower);
    const TextSpan source = text.SourceOfByte(begin);
    for (const char32_t part : lower) text.Put(part, source);
  });
  text.Commit();
}

void Strip(bool left, bool right, AlignedText& text) {
  const std::string_view old = text.text();
  size_t begin = 0, end = old.size();
  while (left && begin < end) {
    const CodePoint next = DecodeCodePoint(old, begin);
    if (!IsWhiteSpace(next.value)) break;
    begin += next.size;
  }
  while (right && begin < end) {
    const CodePoint last = DecodeCodePointBefore(old, end);
    if (!IsWhiteSpace(last.value)) break;
    end -= last.size;
  }
  if (begin == 0 && end == old.size()) return;
  text.Begin();
  text.Keep(begin, end);
  text.Commit();
}

void Prepend(std::string_view content, AlignedText& text) {
  const size_t size = text.text().size();
  if (size == 0) return;
  text.Begin();
  text.Put(content, text.SourceOfByte(0));
  text.Keep(0, size);
  text.Commit();
}

bool IsChinese(char32_t code) {
  const auto between = [&](char32_t first, char32_t last) { return code >= first && code <= last; };
  return between(0x4E00, 0x9FFF) || between(0x3400, 0x4DBF) || between(0x20000, 0x2A6DF) ||
         between(0x2A700, 0x2B73F) || between(0x2B740, 0x2B81F) || between(0x2B920, 0x2CEAF) ||
         between(0xF900, 0xFAFF) || between(0x2F800, 0x2FA1F);
}

void CleanForBert(AlignedText& text) {
  const auto is_control = [](char32_t code) {
    return code != '\t' && code != '\n' && code != '\r' && IsControl(code);
  };
  Filter(text,
         [&](char32_t code) { return code != 0 && code != kReplacement && !is_control(code); });
  text.Begin();
  ForEachCodePoint(text.text(), [&](char32_t code, size_t begin, size_t end) {
    if (code != ' ' && IsWhiteSpace(code)) {
      text.Put(U' ', text.SourceOfByte(begin));
    } else {
      text.Keep(begin, end);
    }
  });
  text.Commit();
}

void SpaceAroundChinese(AlignedText& text) {
  bool any = false;
  ForEachCodePoint(text.text(), [&](char32_t code, size_t, size_t) { any |= IsChinese(code); });
  if (!any) return;
  text.Begin();
  ForEachCodePoint(text.text(), [&](char32_t code, size_t begin, size_t end) {
    if (!IsChinese(code)) return text.Keep(begin, end);
    const TextSpan source = text.SourceOfByte(begin);
    text.Put(U' ', source);
    text.Put(code, source);
    text.Put(U' ', source);
  });
  text.Commit();
}

}  // namespace

void Pattern::Find(std::string_view searched, Piece piece, std::vector<Match>& out) const {
  if (regex) return regex->Find(searched, piece, out);
  uint32_t gap = piece.begin;
  const std::string_view limited = searched.substr(0, piece.end);
  for (size_t found = text.empty() ? std::string_view::npos : limited.find(text, gap);
       found != std::string_view::npos; found = limited.find(text, gap)) {
    const auto begin = static_cast<uint32_t>(found);
    if (gap < begin) out.push_back({{gap, begin}, false});
    gap = begin + static_cast<uint32_t>(text.size());
    out.push_back({{begin, gap}, true});
  }
  if (gap < piece.end) out.push_back({{gap, piece.end}, false});
}

void ReplaceText(const Pattern& pattern, std::string_view content, AlignedText& text) {
  std::vector<Match> matches;
  pattern.Find(text.text(), {0, static_cast<uint32_t>(text.text().size())}, matches);
  if (std::ranges::none_of(matches, &Match::matches)) return;
  text.Begin();
  for (const auto& [piece, matched] : matches) {
    if (matched) {
      text.Put(content, text.SourceOfByte(piece.end - 1));
    } else {
      text.Keep(piece.begin, piece.end);
    }
  }
  text.Commit();
}

void ApplyNormalisers(const std::vector<NormaliserStep>& steps, AlignedText& text) {
  for (const NormaliserStep& step : steps) {
    switch (step.kind) {
      case NormaliserStep::Kind::kNfc:
        ToNormalForm(NormalForm::kNfc, text);
        break;
      case NormaliserStep::Kind::kNfd:
        ToNormalForm(NormalForm::kNfd, text);
        break;
      case NormaliserStep::Kind::kNfkc:
        ToNormalForm(NormalForm::kNfkc, text);
        break;
      case NormaliserStep::Kind::kNfkd:
        ToNormalForm(NormalForm::kNfkd, text);
        break;
      case NormaliserStep::Kind::kLowercase:
        Lowercase(text);
        break;
      case NormaliserStep::Kind::kStrip:
        Strip(step.left, step.right, text);
        break;
      case NormaliserStep::Kind::kStripAccents:
        Filter(text, [](char32_t code) { return !IsMark(code); });
        break;
      case NormaliserStep::Kind::kPrepend:
        Prepend(step.content, text);
        break;
      case NormaliserStep::Kind::kReplace:
        ReplaceText(step.pattern, step.content, text);
        break;
      case NormaliserStep::Kind::kBert:
        if (step.clean_text) CleanForBert(text);
        if (step.chinese) SpaceAroundChinese(text);
        if (step.strip_accents) {
          ToNormalForm(NormalForm::kNfd, text);
          Filter(text, [](char32_t code) { return !IsNonSpacingMark(code); });
        }
        if (step.lowercase) Lowercase(text);
        break;
    }
  }
}

}  // namespace weft
