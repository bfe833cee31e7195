// Answers to prompts as they travel along edges, without padding, and as fragments read them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "language/generator.h"
#include "rlhf/responses.h"
#include "tensor/tensor_map.h"

namespace weft {

// Leaves: prompt_ids i32 [P] and prompt_offsets i64 [n + 1], expected u8 [..] and expected_offsets
// i64 [n + 1]; from the generator on ids i32 [A], offsets i64 [n * group + 1], log_p f32 [A] and
// finished u8 [n * group] and origin i64 [3]; from the reference on reference_log_p f32 [A]; from
// the scorer on reward f64 [n * group].
struct Samples {
  std::vector<std::vector<int32_t>> prompts;  // n
  std::vector<std::string> expected;          // n; what a checkable task wants to hear

  int64_t group = 1;         // answers to each prompt
  std::vector<int32_t> ids;  // of all answers, each with the token that ended it
  Responses responses;
  std::vector<float> log_p;
  std::vector<uint8_t> finished;  // ended by itself
  // Of the parameters that spoke; of the draws; the stream of the first answer's draws, answer i
  // has that of first_sample + i.
  int64_t version = 0;
  uint64_t seed = 0;
  int64_t first_sample = 0;

  std::vector<float> reference_log_p;
  std::vector<double> reward;

  void Add(const GeneratedAnswer& answer);
  // Takes a prompt with its rewarded answers over from others of the same group.
  void Append(const Samples& other, int64_t prompt);
  int64_t TokensOf(int64_t prompt) const;  // of all answers to it
  bool Mixed(int64_t prompt) const;        // its answers are not all worth the same

  TensorMap ToMap() const;
  static Samples FromMap(const TensorMap& map);
};

// Their numbers.
std::vector<int64_t> AllPrompts(const Samples& samples);
// use(some of them) for runs of prompts that have, with their answers, about `tokens` tokens.
void ForPrompts(const Samples& samples, std::span<const int64_t> prompts, int64_t tokens,
                const std::function<void(std::span<const int64_t>)>& use);

}  // namespace weft
