// Everything that describes a model beside its weights: what its files say, so that it can be
// written again.
#pragma once

#include <cstdint>
#include <optional>

#include "language/model_config.h"
#include "language/rope.h"

namespace weft {

// generation_config.json; what is not given is left to the sampler's own defaults. The ids of the
// end are in ModelConfig.
struct GenerationDefaults {
  std::optional<bool> do_sample;
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::optional<int64_t> top_k, max_new_tokens;

  bool operator==(const GenerationDefaults&) const = default;
};

struct ModelDescription {
  ModelConfig config;
  RopeSettings rope;  // config.rope comes of it
  GenerationDefaults generation;
};

}  // namespace weft
