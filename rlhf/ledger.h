// Every sample of a run, a line each: enough to say it again and to see why it was rewarded.
#pragma once

#include <cstdint>
#include <string>

#include "language/chat_model.h"
#include "rlhf/samples.h"

namespace weft {

// The file FOLDER/samples.jsonl. A line: {"version" (of the parameters that spoke), "step", "seed",
// "sample" (the stream of its draws), "prompt" and "ids" (tokens), "turns" (of an episode: [begin,
// end) in ids of what the model said), "log_p" and "reference_log_p" (of what it said), "finished",
// "reward", "text"}.
class Ledger {
 public:
  // model: path of the one whose words ids are.
  Ledger(const std::string& folder, const std::string& model);

  // The first call drops the lines from its first sample on, which an earlier part of the run left:
  // they are made again.
  void Add(int64_t step, const Samples& samples);

 private:
  void Rewind(int64_t first_sample);

  std::string path_;
  Tokenizer tokenizer_;
  bool rewound_ = false;
};

}  // namespace weft
