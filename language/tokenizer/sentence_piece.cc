// SentencePiece's byte-pair model, as a GGUF carries it: scores instead of a list of merges.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "language/tokenizer/marker.h"
#include "language/tokenizer/model.h"
#include "language/unicode.h"

namespace weft {
namespace {

class SentencePiece : public TokenModel {
 public:
  SentencePiece(Vocabulary vocabulary, const std::vector<float>& scores, int32_t unknown)
      : vocabulary_(std::move(vocabulary)), unknown_(unknown), ranks_(scores.size(), Merge::kNone) {
    std::vector<int32_t> order;
    for (size_t id = 0; id < scores.size(); ++id) {
      if (!std::isnan(scores[id])) order.push_back(static_cast<int32_t>(id));
    }
    std::ranges::stable_sort(order, [&](int32_t a, int32_t b) {
      return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
    });
    uint32_t rank = 0;  // equal scores share one: the leftmost of them merges
    for (size_t i = 0; i < order.size(); ++i) {
      const auto id = static_cast<size_t>(order[i]);
      if (i > 0 && scores[id] != scores[static_cast<size_t>(order[i - 1])]) ++rank;
      ranks_[id] = rank;
    }
    char name[8];
    for (size_t byte = 0; byte < 256; ++byte) {
      std::snprintf(name, sizeof(name), "<0x%02X>", static_cast<unsigned>(byte));
      fallback_[byte] = vocabulary_.Find(name);
    }
    cuts_at_marker_ = true;
    for (const int32_t id : order) {
      if (HasInnerMarker(vocabulary_.Text(id))) cuts_at_marker_ = false;
    }
  }

  void Tokenize(std::string_view word, MergeScratch& scratch,
                std::vector<Token>& out) const override {
    out.clear();
    for (uint32_t position = 0; position < word.size();) {
      const uint32_t size = DecodeCodePoint(word, position).size;
      out.push_back({FindText(word.substr(position, size)), position, position + size});
      position += size;
    }
    MergeSymbols(out, scratch, [&](const Token& left, const Token& right) -> Merge {
      const std::string_view text = word.substr(left.begin, right.end - left.begin);
      const int32_t id = text.size() > vocabulary_.longest() ? Vocabulary::kNone : FindText(text);
      return id == Vocabulary::kNone ? Merge{} : Merge{ranks_[static_cast<size_t>(id)], id};
    });
    if (std::ranges::any_of(out, [](const Token& token) { return token.id < 0; })) {
      SpellUnknown(word, out);
    }
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  bool CutsAtMarker() const override { return cuts_at_marker_; }

 private:
  // A token that text may become, or kNone.
  int32_t FindText(std::string_view text) const {
    const int32_t id = vocabulary_.Find(text);
    const bool spoken = id >= 0 && ranks_[static_cast<size_t>(id)] != Merge::kNone;
    return spoken ? id : Vocabulary::kNone;
  }

  // What is no token becomes the tokens of its bytes, or one unknown token.
  void SpellUnknown(std::string_view word, std::vector<Token>& out) const {
    std::vector<Token> spelled;
    for (const Token& token : out) {
      if (token.id >= 0) {
        spelled.push_back(token);
        continue;
      }
      bool has_bytes = true;
      for (uint32_t i = token.begin; i < token.end; ++i) {
        has_bytes &= fallback_[static_cast<uint8_t>(word[i])] >= 0;
      }
      if (has_bytes) {
        for (uint32_t i = token.begin; i < token.end; ++i) {
          spelled.push_back({fallback_[static_cast<uint8_t>(word[i])], i, i + 1});
        }
      } else if (unknown_ >= 0) {
        spelled.push_back({unknown_, token.begin, token.end});
      }
    }
    out.swap(spelled);
  }

  Vocabulary vocabulary_;
  int32_t unknown_;
  std::vector<uint32_t> ranks_;  // by id; Merge::kNone: never from text
  std::array<int32_t, 256> fallback_{};
  bool cuts_at_marker_ = false;
};

}  // namespace

std::unique_ptr<TokenModel> MakeSentencePiece(Vocabulary vocabulary,
                                              const std::vector<float>& scores, int32_t unknown) {
  return std::make_unique<SentencePiece>(std::move(vocabulary), scores, unknown);
}

}  // namespace weft
