// Speed of language models: tokens per second of decoding, reading prompts and training, through
// the classes that chat, RLHF and pretraining use.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace weft {

class LanguageBench {
 public:
  explicit LanguageBench(int threads);
  ~LanguageBench();

  // decode_bf16_1, ..., in the order of their printing.
  static const std::vector<std::string>& Names();
  // One sample of a row: tokens per second, or seconds for first_token. The chat model must have
  // been fetched (Error(kUnavailable)).
  double Measure(const std::string& name);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft
