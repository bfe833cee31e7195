#include "language/tokenizer/decoder.h"

#include <algorithm>

#include "language/tokenizer/model.h"
#include "language/unicode.h"

namespace weft {
namespace {

std::string Replaced(const Pattern& pattern, std::string_view text, std::string_view content) {
  std::vector<Match> matches;
  pattern.Find(text, {0, static_cast<uint32_t>(text.size())}, matches);
  std::string out;
  for (const auto& [piece, matched] : matches) {
    out += matched ? content : text.substr(piece.begin, piece.end - piece.begin);
  }
  return out;
}

std::string ReplacedText(std::string_view text, std::string_view from, std::string_view to) {
  return Replaced({std::string(from), nullptr}, text, to);
}

// The byte that <0xHH> spells, or -1.
int ByteOf(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int value = 0;
  for (const char c : token.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

// Appends the bytes that a token spells; a token with any other code point is its own bytes.
void AppendByteLevel(std::string_view token, std::string& out) {
  const size_t before = out.size();
  for (size_t position = 0; position < token.size();) {
    const CodePoint next = DecodeCodePoint(token, position);
    const int byte = ByteOfCodePoint(next.value);
    if (byte < 0) {
      out.resize(before);
      out.append(token);
      return;
    }
    out += static_cast<char>(byte);
    position += next.size;
  }
}

// The spaces that WordPiece puts before punctuation and English contractions.
std::string Cleaned(std::string text) {
  constexpr std::string_view kRules[][2] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
  };
  for (const auto& [from, to] : kRules) {
    if (text.find(from) != std::string::npos) text = ReplacedText(text, from, to);
  }
  return text;
}

std::string Stripped(std::string_view token, const DecoderStep& step) {
  for (int64_t i = 0; i < step.start && token.starts_with(step.content); ++i) {
    token.remove_prefix(step.content.size());
  }
  for (int64_t i = 0; i < step.stop && token.ends_with(step.content); ++i) {
    token.remove_suffix(step.content.size());
  }
  return std::string(token);
}

}  // namespace

void DecodeState::ReleaseBytes(size_t step, std::string& out) {
  std::string& bytes = held_[step].text;
  if (bytes.empty()) return;
  if (IsUtf8(bytes)) {
    Push(step + 1, bytes, out);
  } else {
    for (size_t i = 0; i < bytes.size(); ++i) Push(step + 1, "\xEF\xBF\xBD", out);
  }
  bytes.clear();
}

// Of all tokens together: drops from the front, and holds back what may have to go from the back.
void DecodeState::PushStripped(size_t step, std::string_view token, std::string& out) {
  const DecoderStep& rule = (*steps_)[step];
  Held& held = held_[step];
  while (!held.begun && !token.empty()) {
    if (held.tokens == rule.start || !token.starts_with(rule.content)) {
      held.begun = true;
    } else {
      token.remove_prefix(rule.content.size());
      ++held.tokens;
    }
  }
  if (token.empty()) return;
  held.text += token;
  size_t keep = held.text.size();
  for (int64_t i = 0; i < rule.stop; ++i) {
    if (!std::string_view(held.text).substr(0, keep).ends_with(rule.content)) break;
    keep -= rule.content.size();
  }
  const std::string ready = held.text.substr(0, keep);
  held.text.erase(0, keep);
  if (!ready.empty()) Push(step + 1, ready, out);
}

void DecodeState::Push(size_t step, std::string_view token, std::string& out) {
  if (step == steps_->size()) {
    out.append(token);
    return;
  }
  const DecoderStep& rule = (*steps_)[step];
  Held& held = held_[step];
  switch (rule.kind) {
    case DecoderStep::Kind::kByteLevel: {
      AppendByteLevel(token, held.text);
      const size_t ready = held.text.size() - IncompleteTail(held.text);
      std::string text;
      AppendReplaced(std::string_view(held.text).substr(0, ready), text);
      held.text.erase(0, ready);
      if (!text.empty()) Push(step + 1, text, out);
      return;
    }
    case DecoderStep::Kind::kByteFallback:
      if (const int byte = ByteOf(token); byte >= 0) {
        held.text += static_cast<char>(byte);
      } else {
        ReleaseBytes(step, out);
        Push(step + 1, token, out);
      }
      return;
    case DecoderStep::Kind::kFuse:
      return Push(step + 1, token, out);
    case DecoderStep::Kind::kReplace:
      return Push(step + 1, Replaced(rule.pattern, token, rule.content), out);
    case DecoderStep::Kind::kStrip:
      return rule.fused ? PushStripped(step, token, out)
                        : Push(step + 1, Stripped(token, rule), out);
    case DecoderStep::Kind::kMetaspace: {
      const bool drop = rule.drop_first && held.tokens == 0;
      held.tokens = 1;
      return Push(step + 1, ReplacedText(token, rule.content, drop ? "" : " "), out);
    }
    case DecoderStep::Kind::kWordPiece: {
      std::string text(token);
      if (held.tokens > 0 && token.starts_with(rule.content)) {
        text.erase(0, rule.content.size());
      } else if (held.tokens > 0) {
        text.insert(0, 1, ' ');
      }
      held.tokens = 1;
      return Push(step + 1, rule.cleanup ? Cleaned(std::move(text)) : text, out);
    }
    case DecoderStep::Kind::kBpeSuffix: {
      const std::string ready = ReplacedText(held.text, rule.content, " ");
      held.text = token;
      if (!ready.empty()) Push(step + 1, ready, out);
      return;
    }
    case DecoderStep::Kind::kJoin: {
      const std::string text = (held.tokens > 0 ? " " : "") + std::string(token);
      held.tokens = 1;
      return Push(step + 1, text, out);
    }
  }
}

void DecodeState::Finish(std::string& out) {
  for (size_t step = 0; step < steps_->size(); ++step) {
    const DecoderStep& rule = (*steps_)[step];
    std::string& text = held_[step].text;
    if (rule.kind == DecoderStep::Kind::kByteFallback) {
      ReleaseBytes(step, out);
    } else if (rule.kind == DecoderStep::Kind::kByteLevel && !text.empty()) {
      std::string replaced;
      AppendReplaced(text, replaced);
      Push(step + 1, replaced, out);
    } else if (rule.kind == DecoderStep::Kind::kBpeSuffix && !text.empty()) {
      Push(step + 1, ReplacedText(text, rule.content, ""), out);
    }  // what a fused kStrip holds back is dropped
  }
  Reset();
}

}  // namespace weft
