// Speed of language models: tokens per second of decoding, reading prompts and training, through
// the classes that chat, RLHF and pretraining use.
#pragma once

#include <memory>
#include <string>

namespace weft {

class LanguageBench {
 public:
  explicit LanguageBench(int threads);
  ~LanguageBench();

  // One sample of a row: tokens per second, or seconds for first_token. KIND_FORM_SIZE is decoding
  // with so many rows, reading a prompt, or training, of weights in bf16, f32, q4_1 or q4_1_int8.
  // The chat model must have been fetched (Error(kUnavailable)).
  double Measure(const std::string& name);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft
