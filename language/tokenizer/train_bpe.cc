#include "language/tokenizer/train_bpe.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <unordered_map>

#include "base/check.h"
#include "language/tokenizer/model.h"
#include "language/tokenizer/tokenizer_parts.h"
#include "language/unicode.h"

namespace weft {
namespace {

using Pair = std::pair<int32_t, int32_t>;

// A word that occurs `count` times, as the tokens it is made of so far.
struct Word {
  std::vector<int32_t> tokens;
  int64_t count;
};

struct Candidate {
  int64_t count;
  Pair pair;
  bool operator<(const Candidate& other) const {  // the greatest merges first
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

class Trainer {
 public:
  Trainer(std::vector<Word> words, Vocabulary& vocabulary, const BpeTraining& training,
          std::vector<std::string>& merges)
      : words_(std::move(words)), vocabulary_(vocabulary), training_(training), merges_(merges) {
    for (uint32_t i = 0; i < words_.size(); ++i) {
      const auto& tokens = words_[i].tokens;
      for (size_t k = 0; k + 1 < tokens.size(); ++k) {
        Change({tokens[k], tokens[k + 1]}, words_[i].count, i);
      }
    }
    PushChanged();
  }

  void Run() {
    while (vocabulary_.size() < training_.vocabulary && !candidates_.empty()) {
      Candidate best = candidates_.top();
      candidates_.pop();
      const int64_t count = pairs_[best.pair].count;
      if (count != best.count) {  // it was pushed before some of its places merged otherwise
        best.count = count;
        if (count > 0) candidates_.push(best);
        continue;
      }
      if (count < std::max<int64_t>(training_.min_count, 1)) break;
      MergePair(best.pair);
    }
  }

 private:
  struct PairEntry {
    int64_t count = 0;
    std::set<uint32_t> words;  // that may hold it
  };

  void Change(const Pair& pair, int64_t count, uint32_t word) {
    PairEntry& entry = pairs_[pair];
    entry.count += count;
    if (count <= 0) return;
    entry.words.insert(word);
    changed_.insert(pair);
  }

  void PushChanged() {
    for (const Pair& pair : changed_) {
      if (pairs_[pair].count > 0) candidates_.push({pairs_[pair].count, pair});
    }
    changed_.clear();
  }

  void MergePair(const Pair& pair) {
    const std::string left(vocabulary_.Text(pair.first)), right(vocabulary_.Text(pair.second));
    const int32_t merged = vocabulary_.Add(left + right, vocabulary_.size()).id;
    merges_.push_back(left + " " + right);
    const std::set<uint32_t> words = std::exchange(pairs_[pair].words, {});
    for (const uint32_t index : words) MergeWord(index, pair, merged);
    pairs_[pair].count = 0;
    PushChanged();
  }

  void MergeWord(uint32_t index, const Pair& pair, int32_t merged) {
    auto& tokens = words_[index].tokens;
    const int64_t count = words_[index].count;
    size_t written = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const bool found =
          tokens[i] == pair.first && i + 1 < tokens.size() && tokens[i + 1] == pair.second;
      if (!found) {
        tokens[written++] = tokens[i];
        continue;
      }
      if (written > 0) {
        Change({tokens[written - 1], pair.first}, -count, index);
        Change({tokens[written - 1], merged}, count, index);
      }
      if (i + 2 < tokens.size()) {
        Change({pair.second, tokens[i + 2]}, -count, index);
        Change({merged, tokens[i + 2]}, count, index);
      }
      tokens[written++] = merged;
      ++i;
    }
    tokens.resize(written);
  }

  struct PairHash {
    size_t operator()(const Pair& pair) const {
      const uint64_t key =
          (uint64_t{static_cast<uint32_t>(pair.first)} << 32) | static_cast<uint32_t>(pair.second);
      return key * 0x9E3779B97F4A7C15 >> 16;
    }
  };

  std::vector<Word> words_;
  Vocabulary& vocabulary_;
  const BpeTraining& training_;
  std::vector<std::string>& merges_;
  std::unordered_map<Pair, PairEntry, PairHash> pairs_;  // looked up, never walked
  std::set<Pair> changed_;
  std::priority_queue<Candidate> candidates_;
};

// How often each word occurs, in the order of words.
std::map<std::string, int64_t> CountWords(std::span<const std::string_view> texts,
                                          const std::vector<PreTokenizerStep>& steps) {
  std::unordered_map<std::string, int64_t> counts;
  AlignedText aligned;
  std::vector<Piece> pieces;
  PreTokenizerScratch scratch;
  for (const std::string_view text : texts) {
    if (text.empty()) continue;
    std::string repaired;
    if (!IsUtf8(text)) AppendReplaced(text, repaired);
    aligned.Reset(repaired.empty() ? text : repaired, 0);
    PreTokenize(steps, aligned, pieces, scratch);
    for (const Piece& piece : pieces) {
      ++counts[std::string(aligned.text().substr(piece.begin, piece.end - piece.begin))];
    }
  }
  return {counts.begin(), counts.end()};
}

}  // namespace

GgufTokenizer TrainBpe(std::span<const std::string_view> texts, const BpeTraining& training) {
  GgufTokenizer trained;
  trained.model = "gpt2";
  trained.pre = training.pre;
  TokenizerParts parts;
  ReadComponents(GgufComponents(trained, "training"), "training", parts);

  Vocabulary vocabulary;
  for (const std::string& special : training.specials) {
    WEFT_CHECK(!special.empty() && vocabulary.Add(special, vocabulary.size()).added)
        << "the special token \"" << special << "\" is empty or stands twice";
  }
  // The bytes in the order of the code points that stand for them.
  std::vector<std::pair<char32_t, size_t>> alphabet;
  for (size_t byte = 0; byte < 256; ++byte) {
    alphabet.emplace_back(ByteLevelCodePoint(static_cast<uint8_t>(byte)), byte);
  }
  std::ranges::sort(alphabet);
  std::array<int32_t, 256> ids{};
  for (const auto& [code, byte] : alphabet) {
    std::string text;
    AppendCodePoint(code, text);
    ids[byte] = vocabulary.Add(text, vocabulary.size()).id;
  }
  WEFT_CHECK_GE(training.vocabulary, vocabulary.size()) << "256 bytes and the special tokens";

  std::vector<Word> words;
  for (const auto& [text, count] : CountWords(texts, parts.pre_tokenizers)) {
    Word& word = words.emplace_back(Word{{}, count});
    for (const char byte : text) word.tokens.push_back(ids[static_cast<uint8_t>(byte)]);
  }
  Trainer(std::move(words), vocabulary, training, trained.merges).Run();

  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    trained.tokens.emplace_back(vocabulary.Text(id));
    const bool special = id < std::ssize(training.specials);
    trained.types.push_back(
        static_cast<int32_t>(special ? GgufTokenType::kControl : GgufTokenType::kNormal));
  }
  return trained;
}

}  // namespace weft
