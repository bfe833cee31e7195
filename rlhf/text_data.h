// Plain text files as one long row of tokens, for training from scratch: what comes last is kept
// back, the rest is drawn in windows that begin anywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "dataflow/fragment.h"
#include "language/tokenizer/tokenizer.h"
#include "language/tokenizer_files.h"
#include "rlhf/examples.h"

namespace weft {

struct TextDataConfig : Config {
  std::vector<std::string> files;
  std::string tokenizer = "bpe";
  int64_t vocabulary = 4096;
  int64_t window = 256;
  double evaluation_share = 0.1;

  void Fields(FieldVisitor& v) override;
  void Check() const override;
};

// A tokenizer.json and its tokenizer_config.json for the files: one token a character that occurs,
// or byte-level BPE of so many tokens learnt from them, the first <|endoftext|>.
TextFiles MakeTokenizer(const TextDataConfig& config);

class TextData {
 public:
  // The files in order, each after the other. Error(kIo) for one that cannot be read;
  // Error(kConfig) where there are fewer tokens than two windows.
  TextData(const TextDataConfig& config, const Tokenizer& tokenizer);

  // `count` windows of window + 1 tokens, all but the first learnt; draw number `first` on.
  Examples Draw(uint64_t seed, uint64_t first, int64_t count) const;
  // What was kept back, whole: windows side by side, each token but the first foreseen once.
  Examples HeldOut() const;

  int64_t training_tokens() const { return training_; }
  uint32_t checksum() const { return checksum_; }

 private:
  void AddWindow(int64_t begin, int64_t end, int64_t number, Examples& to) const;

  const int64_t window_;
  std::vector<int32_t> ids_;
  int64_t training_ = 0;  // ids_ that are trained on, from the first
  uint32_t checksum_ = 0;
};

struct TextFragmentOptions {
  TextDataConfig data;
  TextFiles tokenizer;  // tokenizer.json first
  uint64_t seed = 1;
  int64_t batch = 16, total_steps = 1, evaluate_every = 0;
};
// Output "batch": a DataStep (rlhf/data_source.h) a step.
FragmentFactory TextFragment(const TextFragmentOptions& options);

}  // namespace weft
