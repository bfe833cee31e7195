// Bytes that a transformer takes, from its config alone: for plans that are made before anything is
// loaded. Each function names what in transformer.h it counts.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "language/language_model.h"
#include "language/model_config.h"
#include "language/projection.h"

namespace weft {

class TransformerMemory {
 public:
  TransformerMemory(const ModelConfig& config, Precision precision);

  const ModelConfig& config() const { return config_; }
  // Elements: of all weights, of the matrices that products read, of the largest of these.
  int64_t weights() const { return weights_; }
  int64_t matrices() const { return matrices_; }
  int64_t largest() const { return largest_; }
  // Of LoRA adapters beside the matrices whose names end in one of the targets.
  int64_t AdapterWeights(int64_t rank, std::span<const std::string> targets) const;

  // TransformerTrace of a pass over so many tokens.
  int64_t Trace(int64_t tokens, bool recompute) const;
  // What comes and goes beside it: in a layer, on the way there or on both ways.
  int64_t Layer(int64_t tokens, bool backward) const;
  // ScoreTokens of so many rows (their logits, by blocks), one way or both.
  int64_t Head(int64_t rows, bool backward) const;
  // Pages of keys and values that hold so many positions of one sequence.
  int64_t Cache(int64_t positions) const;

 private:
  const ModelConfig config_;
  const int64_t operand_;  // bytes of an element that products read
  int64_t weights_ = 0, matrices_ = 0, largest_ = 0;
};

// A model that LoadTransformer reads, once it is loaded.
int64_t LoadedBytes(const ModelFile& file, const LoadOptions& options);

}  // namespace weft
