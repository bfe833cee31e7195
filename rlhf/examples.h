// What learners from data read: token sequences with a mark on each token that is learnt, one
// sequence an example or, of a pair, two that begin with the same prompt.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rlhf/responses.h"
#include "tensor/tensor_map.h"

namespace weft {

struct MarkedSequence {
  std::vector<int32_t> ids;
  std::vector<uint8_t> learnt;  // [ids], 1: foreseen by the token before it; never the first

  int64_t learnt_tokens() const;
  int64_t prompt_tokens() const;  // before the first that is learnt
};

struct Example {
  std::string place;                      // "FILE:LINE"
  std::vector<MarkedSequence> sequences;  // of a pair: chosen, rejected
  bool label = true;                      // of a verdict
  double margin = 0;                      // of a pair
  bool ends = true;                       // each sequence's learnt tokens end with one that stops
};

// Several examples as they travel along edges. Leaves: ids i32 [T], learnt u8 [T], offsets i64 [S +
// 1], number i64, label u8 and margin f64 [S / width], width i64 [1] and, behind a reference model,
// reference f64 [S] and mismatched_reference f64 [S].
struct Examples {
  std::vector<int32_t> ids;
  std::vector<uint8_t> learnt;
  Responses sequences;
  int64_t width = 1;            // sequences of an example
  std::vector<int64_t> number;  // of the example in its data: equal numbers, equal examples
  std::vector<uint8_t> label;
  std::vector<double> margin;
  std::vector<double> reference;  // [S], sums of log p of the learnt tokens
  // The same of answers to others' prompts (Mismatched in rlhf/offline.h).
  std::vector<double> mismatched_reference;

  int64_t count() const { return std::ssize(number); }
  std::span<const int32_t> Ids(int64_t sequence) const {
    return sequences.Of(std::span<const int32_t>(ids), sequence);
  }
  std::span<const uint8_t> Learnt(int64_t sequence) const {
    return sequences.Of(std::span<const uint8_t>(learnt), sequence);
  }
  int64_t LearntTokens(int64_t sequence) const;
  int64_t PromptTokens(int64_t sequence) const;
  void Add(const Example& example, int64_t example_number);
  void Append(const Examples& other, int64_t example);  // one of the other's, without reference

  TensorMap ToMap() const;
  static Examples FromMap(const TensorMap& map);
};

}  // namespace weft
