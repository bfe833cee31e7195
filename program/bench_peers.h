// Other programs' language models on this machine, measured in turns with ours.
#pragma once

#include <map>
#include <string>

#include "program/subprocess.h"

namespace weft {

class LanguagePeers {
 public:
  // Writes the chat model in the forms that peers read into runs/bench_models (1.4 GB, removed at
  // the end) and starts what Python has of them: llama-cpp-python, and torch with transformers and
  // peft. Throws Error(kUnavailable) where Python (WEFT_PYTHON, or python3) has neither.
  explicit LanguagePeers(int threads);
  ~LanguagePeers();

  // A sample of this row of weft bench language by each peer that can do it: its name and its
  // tokens per second, or seconds for first_token.
  std::map<std::string, double> Measure(const std::string& row);

 private:
  const std::string folder_ = "runs/bench_models";
  FedProcess python_;
};

}  // namespace weft
