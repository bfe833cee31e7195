// Answers to prompts as they travel along edges, without padding, and as fragments read them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rlhf/responses.h"
#include "tensor/tensor_map.h"

namespace weft {

// One answer as it is spoken.
struct Spoken {
  std::vector<int32_t> ids;
  std::vector<uint8_t> said;  // [ids]
  std::vector<float> log_p;   // of those that were said
  bool finished = false;
  double outcome = 0;

  void Say(int32_t id, float log_probability);
  void Hear(std::span<const int32_t> words);
};

// Of the streams that answers are drawn from, those that evaluations draw from, and no training.
constexpr int64_t kEvaluationStreams = int64_t{1} << 32;

// Leaves: evaluation u8 [1] where it is one; prompt_ids i32 [P] and prompt_offsets i64 [n + 1],
// expected u8 [..] and expected_offsets i64 [n + 1]; from the generator on ids i32 [A], said u8
// [A], offsets i64 [n * group + 1], log_p f32 [T], finished u8 and outcome f64 [n * group] and
// origin i64 [3]; from the reference on reference_log_p f32 [T]; from the scorer on reward f64 [n *
// group].
struct Samples {
  std::vector<std::vector<int32_t>> prompts;  // n
  std::vector<std::string> expected;          // n; what a checkable task wants to hear
  bool evaluation = false;                    // judged, not learnt from

  int64_t group = 1;          // answers to each prompt
  std::vector<int32_t> ids;   // [A] of all answers, each with the token that ended it
  std::vector<uint8_t> said;  // [A] 1: by the model; 0: by its counterpart in an episode
  Responses texts;            // the answers in these
  Responses responses;        // the answers in the T tokens that the model said, which alone count
  std::vector<float> log_p;   // [T]
  std::vector<uint8_t> finished;  // the model's last turn ended by itself
  std::vector<double> outcome;    // what the counterpart of an episode found it worth; else 0
  // Of the parameters that spoke; of the draws; the stream of the first answer's draws, answer i
  // has that of first_sample + i.
  int64_t version = 0;
  uint64_t seed = 0;
  int64_t first_sample = 0;

  std::vector<float> reference_log_p;
  std::vector<double> reward;

  void Add(const Spoken& answer);
  // Takes a prompt with its rewarded answers over from others of the same group.
  void Append(const Samples& other, int64_t prompt);
  // Of all answers to a prompt: their tokens, and those of them that the model said.
  int64_t TokensOf(int64_t prompt) const;
  int64_t SaidTokensOf(int64_t prompt) const;
  // The model's turns of an answer as places in its ids, [begin, end).
  std::vector<std::pair<int64_t, int64_t>> TurnsOf(int64_t answer) const;
  bool Mixed(int64_t prompt) const;  // its answers are not all worth the same

  TensorMap ToMap() const;
  static Samples FromMap(const TensorMap& map);
};

// Their numbers.
std::vector<int64_t> AllPrompts(const Samples& samples);
// Tokens that all these prompts begin with, but not the last of one; 0 where it is not worth
// reading them once for all.
int64_t CommonBeginning(const Samples& samples, std::span<const int64_t> prompts);
// use(some of them) for runs of prompts that have, with their answers, about `tokens` tokens.
void ForPrompts(const Samples& samples, std::span<const int64_t> prompts, int64_t tokens,
                const std::function<void(std::span<const int64_t>)>& use);

}  // namespace weft
