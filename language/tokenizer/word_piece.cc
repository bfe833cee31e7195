#include <algorithm>

#include "language/tokenizer/model.h"
#include "language/unicode.h"

namespace weft {
namespace {

class WordPiece : public TokenModel {
 public:
  WordPiece(Vocabulary vocabulary, int32_t unknown, std::string prefix, int64_t max_code_points)
      : vocabulary_(std::move(vocabulary)),
        unknown_(unknown),
        prefix_(std::move(prefix)),
        max_code_points_(max_code_points) {}

  void Tokenize(std::string_view word, MergeScratch&, std::vector<Token>& out) const override {
    out.clear();
    const auto size = static_cast<uint32_t>(word.size());
    std::string name;
    if (static_cast<int64_t>(CountCodePoints(word)) <= max_code_points_) {
      for (uint32_t begin = 0; begin < size;) {
        // No token is longer than the longest, so a long word costs no more than its length.
        uint32_t end = static_cast<uint32_t>(
            std::min<size_t>(size, begin + std::min(size_t{size}, vocabulary_.longest())));
        int32_t id = Vocabulary::kNone;
        for (; end > begin; --end) {
          if (end < size && (word[end] & 0xC0) == 0x80) continue;
          name.assign(begin > 0 ? prefix_ : "");
          name.append(word.substr(begin, end - begin));
          id = vocabulary_.Find(name);
          if (id != Vocabulary::kNone) break;
        }
        if (id == Vocabulary::kNone) {
          out.clear();
          break;
        }
        out.push_back({id, begin, end});
        begin = end;
      }
    }
    if (out.empty()) out.push_back({unknown_, 0, size});
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  Vocabulary vocabulary_;
  int32_t unknown_;
  std::string prefix_;
  int64_t max_code_points_;
};

}  // namespace

std::unique_ptr<TokenModel> MakeWordPiece(Vocabulary vocabulary, int32_t unknown,
                                          std::string prefix, int64_t max_code_points) {
  return std::make_unique<WordPiece>(std::move(vocabulary), unknown, std::move(prefix),
                                     max_code_points);
}

}  // namespace weft
