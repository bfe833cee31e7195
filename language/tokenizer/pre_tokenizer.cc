#include "language/tokenizer/pre_tokenizer.h"

#include <algorithm>

#include "language/unicode.h"

namespace weft {
namespace {

// Appends runs of code points that test alike, in order; with alone, each that tests true alone.
template <class Test>
void FindRuns(std::string_view text, Piece piece, bool alone, const Test& test,
              std::vector<Match>& out) {
  const size_t first = out.size();
  for (uint32_t position = piece.begin; position < piece.end;) {
    const CodePoint next = DecodeCodePoint(text, position);
    const bool matches = test(next.value);
    if (out.size() > first && out.back().matches == matches && !(matches && alone)) {
      out.back().piece.end = position + next.size;
    } else {
      out.push_back({{position, position + next.size}, matches});
    }
    position += next.size;
  }
}

bool IsBertPunctuation(char32_t code) {
  if (code < 128) return code > ' ' && code < 127 && ClassOf(code) == CharacterClass::kOther;
  return IsPunctuation(code);
}

// Writes the text anew, each piece with its spaces replaced and a prefix where wants_prefix says.
template <class WantsPrefix>
void Rewrite(AlignedText& text, std::vector<Piece>& pieces, std::string_view space,
             const WantsPrefix& wants_prefix) {
  const std::string_view old = text.text();
  uint32_t size = 0;
  text.Begin();
  for (Piece& piece : pieces) {
    const uint32_t begin = size;
    if (wants_prefix(piece)) {
      text.Put(space, text.SourceOfByte(piece.begin));
      size += static_cast<uint32_t>(space.size());
    }
    for (uint32_t position = piece.begin; position < piece.end;) {
      const size_t found = std::min<size_t>(old.find(' ', position), piece.end);
      text.Keep(position, found);
      size += static_cast<uint32_t>(found) - position;
      position = static_cast<uint32_t>(found);
      if (position < piece.end) {
        text.Put(space, text.SourceOfByte(position));
        size += static_cast<uint32_t>(space.size());
        ++position;
      }
    }
    piece = {begin, size};
  }
  text.Commit();
}

void ApplyMetaspace(const PreTokenizerStep& step, AlignedText& text, std::vector<Piece>& pieces) {
  const std::string_view old = text.text();
  const auto wants_prefix = [&](const Piece& piece) {
    const std::string_view word = old.substr(piece.begin, piece.end - piece.begin);
    if (word.starts_with(' ') || word.starts_with(step.content)) return false;
    return step.prepend == PrependScheme::kAlways ||
           (step.prepend == PrependScheme::kFirst && text.SourceOfByte(piece.begin).begin == 0);
  };
  const bool unchanged =
      old.find(' ') == std::string_view::npos && std::ranges::none_of(pieces, wants_prefix);
  if (!unchanged) Rewrite(text, pieces, step.content, wants_prefix);
}

// Appends what one piece is cut into.
void CutPiece(const PreTokenizerStep& step, std::string_view text, Piece piece,
              PreTokenizerScratch& scratch) {
  using Kind = PreTokenizerStep::Kind;
  if (step.kind == Kind::kKnown) return SplitKnown(step.known, text, piece, scratch.next);
  auto& matches = scratch.matches;
  matches.clear();
  SplitBehaviour behaviour = step.behaviour;
  switch (step.kind) {
    case Kind::kPattern:
      step.pattern.Find(text, piece, matches);
      break;
    case Kind::kDigits:
      FindRuns(text, piece, step.individual, IsNumber, matches);
      behaviour = SplitBehaviour::kIsolated;
      break;
    case Kind::kPunctuation:
      FindRuns(text, piece, true, IsBertPunctuation, matches);
      break;
    case Kind::kWhitespaceSplit:
      FindRuns(text, piece, false, IsWhiteSpace, matches);
      behaviour = SplitBehaviour::kRemoved;
      break;
    case Kind::kBert: {
      const auto separates = [](char32_t code) {
        return IsWhiteSpace(code) || IsBertPunctuation(code);
      };
      FindRuns(text, piece, true, separates, matches);
      std::erase_if(matches, [&](const Match& match) {
        return match.matches && IsWhiteSpace(DecodeCodePoint(text, match.piece.begin).value);
      });
      behaviour = SplitBehaviour::kIsolated;
      break;
    }
    case Kind::kMetaspace: {
      const Pattern marker{step.content, nullptr};
      marker.Find(text, piece, matches);
      behaviour = SplitBehaviour::kMergedWithNext;
      break;
    }
    default:
      break;
  }
  ApplyBehaviour(matches, behaviour, step.invert, scratch.next);
}

}  // namespace

void PreTokenize(const std::vector<PreTokenizerStep>& steps, AlignedText& text,
                 std::vector<Piece>& pieces, PreTokenizerScratch& scratch) {
  using Kind = PreTokenizerStep::Kind;
  pieces.assign(1, {0, static_cast<uint32_t>(text.text().size())});
  for (const PreTokenizerStep& step : steps) {
    if (step.kind == Kind::kPrefixSpace) {
      const auto wants_prefix = [&](const Piece& piece) { return text.text()[piece.begin] != ' '; };
      if (std::ranges::any_of(pieces, wants_prefix)) Rewrite(text, pieces, " ", wants_prefix);
      continue;
    }
    if (step.kind == Kind::kMetaspace) {
      ApplyMetaspace(step, text, pieces);
      if (!step.cut) continue;
    }
    scratch.next.clear();
    for (const Piece& piece : pieces) CutPiece(step, text.text(), piece, scratch);
    pieces.swap(scratch.next);
  }
}

}  // namespace weft
