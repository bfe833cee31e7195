// Answers to prompts as they travel along edges, without padding, and as fragments read them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rlhf/responses.h"
#include "tensor/tensor_map.h"

namespace weft {

// Leaves: prompt_ids i32 [P] and prompt_offsets i64 [n + 1], expected u8 [..] and expected_offsets
// i64 [n + 1]; from the generator on ids i32 [A], offsets i64 [n * group + 1], log_p f32 [A] and
// finished u8 [n * group]; from the scorer on reward f64 [n * group].
struct Samples {
  std::vector<std::vector<int32_t>> prompts;  // n
  std::vector<std::string> expected;          // n; what a checkable task wants to hear

  int64_t group = 1;         // answers to each prompt
  std::vector<int32_t> ids;  // of all answers, each with the token that ended it
  Responses responses;
  std::vector<float> log_p;
  std::vector<uint8_t> finished;  // ended by itself

  std::vector<double> reward;

  TensorMap ToMap() const;
  static Samples FromMap(const TensorMap& map);
};

}  // namespace weft
