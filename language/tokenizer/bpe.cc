// Byte-pair encoding as the `tokenizers` library does it, to the offsets of what it drops.
#include <algorithm>
#include <bit>
#include <cstdio>

#include "base/check.h"
#include "language/tokenizer/marker.h"
#include "language/tokenizer/model.h"
#include "language/unicode.h"

namespace weft {
namespace {

// Pair of ids to its merge. At most half full; no entry is ever removed.
class MergeTable {
 public:
  explicit MergeTable(size_t pairs) : slots_(std::bit_ceil(2 * pairs + 2)) {}

  void Set(int32_t left, int32_t right, Merge merge) {
    Slot& slot = slots_[SlotOf(KeyOf(left, right))];
    slot = {KeyOf(left, right), merge};
  }
  Merge Find(int32_t left, int32_t right) const {
    return slots_[SlotOf(KeyOf(left, right))].merge;  // a free slot has none
  }

 private:
  struct Slot {
    uint64_t key = UINT64_MAX;
    Merge merge;
  };
  static uint64_t KeyOf(int32_t left, int32_t right) {
    return (uint64_t{static_cast<uint32_t>(left)} << 32) | static_cast<uint32_t>(right);
  }
  size_t SlotOf(uint64_t key) const {
    const size_t mask = slots_.size() - 1;
    for (size_t slot = ((key * 0x9E3779B97F4A7C15u) >> 32) & mask;; slot = (slot + 1) & mask) {
      if (slots_[slot].key == key || slots_[slot].key == UINT64_MAX) return slot;
    }
  }

  std::vector<Slot> slots_;
};

class Bpe : public TokenModel {
 public:
  explicit Bpe(BpeParts parts) : parts_(std::move(parts)), merges_(parts_.merges.size()) {
    const Vocabulary& tokens = parts_.vocabulary;
    std::string merged;
    for (size_t rank = 0; rank < parts_.merges.size(); ++rank) {
      const auto [left, right] = parts_.merges[rank];
      const std::string_view left_text = tokens.Text(left), right_text = tokens.Text(right);
      merged.assign(left_text);
      merged.append(right_text.substr(std::min(parts_.prefix.size(), right_text.size())));
      const int32_t id = tokens.Find(merged);
      if (id == Vocabulary::kNone) {
        throw Error(ErrorCode::kCorrupt, parts_.file + ": merge " + std::to_string(rank) + ", \"" +
                                             std::string(left_text) + "\" and \"" +
                                             std::string(right_text) +
                                             "\": the vocabulary lacks their union");
      }
      merges_.Set(left, right, {static_cast<uint32_t>(rank), id});
    }
    std::vector<std::pair<int32_t, int32_t>>().swap(parts_.merges);
    if (!parts_.unknown.empty()) {
      unknown_ = tokens.Find(parts_.unknown);
      if (unknown_ == Vocabulary::kNone) {
        throw Error(ErrorCode::kCorrupt, parts_.file + ": model.unk_token \"" + parts_.unknown +
                                             "\" is not in the vocabulary");
      }
    }
    char name[8];
    for (size_t byte = 0; byte < 256; ++byte) {
      const auto value = static_cast<uint8_t>(byte);
      std::string text;
      AppendCodePoint(parts_.byte_level ? ByteLevelCodePoint(value) : value, text);
      bytes_[byte] = parts_.byte_level || byte < 128 ? tokens.Find(text) : Vocabulary::kNone;
      std::snprintf(name, sizeof(name), "<0x%02X>", static_cast<unsigned>(byte));
      fallback_[byte] = parts_.byte_fallback ? tokens.Find(name) : Vocabulary::kNone;
    }
    decorated_ = !parts_.prefix.empty() || !parts_.suffix.empty();
    cuts_at_marker_ = !parts_.byte_level && !decorated_ && !parts_.ignore_merges &&
                      unknown_ != Vocabulary::kNone &&
                      tokens.Find(kSpaceMarker) != Vocabulary::kNone;
    for (int32_t id = 0; cuts_at_marker_ && id < tokens.size(); ++id) {
      cuts_at_marker_ = !HasInnerMarker(tokens.Text(id));
    }
  }

  void Tokenize(std::string_view word, MergeScratch& scratch,
                std::vector<Token>& out) const override {
    out.clear();
    if (parts_.ignore_merges) {
      const int32_t id =
          parts_.vocabulary.Find(parts_.byte_level ? std::string_view(ToByteLevel(word)) : word);
      if (id != Vocabulary::kNone) {
        out.push_back({id, 0, static_cast<uint32_t>(word.size())});
        return;
      }
    }
    const bool plain_bytes = parts_.byte_level && !decorated_ && unknown_ == Vocabulary::kNone;
    plain_bytes ? AddBytes(word, out) : AddCodePoints(word, out);
    const bool dropped = plain_bytes && out.size() < word.size();
    MergeSymbols(out, scratch, [this](const Token& left, const Token& right) {
      return merges_.Find(left.id, right.id);
    });
    if (dropped) PlaceBehindDropped(word, out);
  }

  const Vocabulary& vocabulary() const override { return parts_.vocabulary; }
  bool CutsAtMarker() const override { return cuts_at_marker_; }

 private:
  void AddBytes(std::string_view word, std::vector<Token>& out) const {
    for (uint32_t i = 0; i < word.size(); ++i) {
      const int32_t id = bytes_[static_cast<uint8_t>(word[i])];
      if (id != Vocabulary::kNone) out.push_back({id, i, i + 1});
    }
  }

  // The library counts positions in the spelling of the bytes and over what it kept, so tokens
  // behind a dropped byte stand too far to the left. Offsets are to be equal, hence so.
  void PlaceBehindDropped(std::string_view word, std::vector<Token>& out) const {
    const auto spelled = [](char byte) {
      return Utf8Size(ByteLevelCodePoint(static_cast<uint8_t>(byte)));
    };
    std::vector<uint32_t> source;  // byte of the spelling to byte of the word
    std::vector<uint32_t> kept = {0};
    for (uint32_t i = 0; i < word.size(); ++i) {
      source.insert(source.end(), spelled(word[i]), i);
      const bool has_token = bytes_[static_cast<uint8_t>(word[i])] != Vocabulary::kNone;
      kept.push_back(kept.back() + (has_token ? spelled(word[i]) : 0));
    }
    for (Token& token : out) {
      token.begin = source[kept[token.begin]];
      token.end = source[kept[token.end] - 1] + 1;
    }
  }

  int32_t FindCodePoint(std::string_view text, bool first, bool last) const {
    if (!decorated_) {
      return text.size() == 1 ? bytes_[static_cast<uint8_t>(text[0])]
                              : parts_.vocabulary.Find(text);
    }
    std::string name = (first ? "" : parts_.prefix) +
                       (parts_.byte_level ? ToByteLevel(text) : std::string(text)) +
                       (last ? parts_.suffix : "");
    return parts_.vocabulary.Find(name);
  }

  void AddCodePoints(std::string_view word, std::vector<Token>& out) const {
    uint32_t end = 0, pending = 0;  // pending: bytes of the unknown token that is not out yet
    const auto add = [&](int32_t id, uint32_t bytes) {
      out.push_back({id, end, end + bytes});
      end += bytes;
    };
    const auto flush = [&] {
      if (pending > 0) add(unknown_, pending);
      pending = 0;
    };
    for (size_t position = 0; position < word.size();) {
      const uint32_t size = parts_.byte_level ? 1 : DecodeCodePoint(word, position).size;
      const std::string_view text = word.substr(position, size);
      const int32_t id = FindCodePoint(text, position == 0, position + size == word.size());
      position += size;
      if (id != Vocabulary::kNone) {
        flush();
        add(id, size);
        continue;
      }
      bool has_bytes = parts_.byte_fallback;
      for (const char byte : text) has_bytes &= fallback_[static_cast<uint8_t>(byte)] >= 0;
      if (has_bytes) {
        for (const char byte : text) add(fallback_[static_cast<uint8_t>(byte)], 1);
      } else if (unknown_ != Vocabulary::kNone) {
        if (!parts_.fuse_unknown) flush();
        pending += size;
      }
    }
    flush();
  }

  BpeParts parts_;
  MergeTable merges_;
  int32_t unknown_ = Vocabulary::kNone;
  std::array<int32_t, 256> bytes_{}, fallback_{};
  bool decorated_ = false, cuts_at_marker_ = false;
};

}  // namespace

std::unique_ptr<TokenModel> MakeBpe(BpeParts parts) {
  return std::make_unique<Bpe>(std::move(parts));
}

}  // namespace weft
