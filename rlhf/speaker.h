// A model's answers to prompts: one turn each, or episodes whose other turns a counterpart has.
//
// Tokens in, tokens out: what the model said stays the tokens that it drew, and the counterpart's
// words are put behind them, with what the chat template writes between two turns of the assistant.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "language/model_files.h"
#include "language/sampling.h"
#include "language/transformer.h"
#include "rlhf/counterpart.h"
#include "rlhf/row_encoder.h"
#include "rlhf/samples.h"

namespace weft {

struct SpeakerOptions {
  std::string model;  // path of the one whose words are spoken
  std::string task;   // whose counterpart answers; "": none
  EpisodeConfig episodes;
  int64_t max_new_tokens = 0;  // of a turn
  int64_t max_rows = 128;      // answers in progress
  SamplingOptions sampling;
};

class Speaker {
 public:
  // Throws Error(kConfig) for a chat template that cannot write a counterpart's words.
  explicit Speaker(const SpeakerOptions& options);

  // samples.group answers to each of samples.prompts, which have none yet, by draws of samples.seed
  // from the stream first_sample on; token n that an answer's model says is drawn at place n of its
  // stream. An episode ends when the counterpart says so, after the last turn, with a turn that did
  // not end by itself, or where the model's context has no room for another one.
  void Speak(const Context& context, const Transformer& model, Samples& samples) const;

  const ModelFile& file() const { return *file_; }
  const Tokenizer& tokenizer() const { return encoder_.tokenizer(); }
  double temperature() const { return options_.sampling.temperature; }

 private:
  struct Row;
  // Shows the rows' turn to the counterpart; those that go on get its words. Whose episode is over.
  std::vector<bool> AskCounterpart(const Samples& samples, int64_t context, int64_t turn,
                                   std::span<Row* const> rows) const;

  const SpeakerOptions options_;
  const std::unique_ptr<ModelFile> file_;
  const RowEncoder encoder_;
  const int64_t turns_;
  const std::unique_ptr<Counterpart> counterpart_;
};

}  // namespace weft
