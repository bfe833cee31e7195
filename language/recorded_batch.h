// A batch of tokens and a page of numbers as a recording of another program holds them
// (reference/language/README.md, "models").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "language/json.h"
#include "language/transformer.h"
#include "tensor/tensor_map.h"

namespace weft {

// The valid tokens of a recorded batch [B, T], row after row, and where each stood in it.
struct RecordedBatch {
  std::vector<int32_t> ids, positions;
  std::vector<kernels::AttentionSpan> spans;
  std::vector<int64_t> place;  // b * T + t
  int64_t columns = 0;

  // From the tensors input_ids, attention_mask and, where there are some, labels; suffix: what the
  // recording puts behind these names ("_right").
  RecordedBatch(const TensorMap& recording, const std::string& suffix);

  TokenBatch tokens() const { return {.ids = ids, .positions = positions, .spans = spans}; }
  // The next token of each, -1 at the end of a row.
  std::vector<int32_t> Next() const;
  // The next token where the labels want it learnt, else -1.
  std::vector<int32_t> Targets() const;

 private:
  Tensor labels_;  // [B, T]
};

// The canonical gradients where the weights lay, which are given up for them.
void PutGradientsInPlace(Transformer& model);

double RecordedNumber(const JsonValue& page, const char* key);
std::vector<double> RecordedNumbers(const JsonValue& page, const char* key);

}  // namespace weft
