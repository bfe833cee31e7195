// Scaling of rotary positions as model files name it, and the frequencies that come of it. Formulas
// are those of Hugging Face's modeling_rope_utils.py (transformers 5): Peng et al. 2023 for yarn.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "language/model_config.h"

namespace weft {

enum class RopeKind : uint8_t {
  kDefault,
  kLinear,   // all frequencies divided by factor
  kLlama3,   // the low ones divided, the middle ones partly
  kYarn,     // the same by ramp, and attention scaled
  kFactors,  // each frequency divided by its own number (longrope's, or a GGUF's rope_freqs)
};

// What a file says, so that it can be written again; fields of other kinds keep their defaults.
struct RopeSettings {
  RopeKind kind = RopeKind::kDefault;
  double theta = 10000;
  double factor = 1;                // linear, llama3, yarn; >= 1
  double low_frequency_factor = 1;  // llama3
  double high_frequency_factor = 4;
  int64_t original_context = 0;            // llama3, yarn: positions trained before scaling
  double beta_fast = 32, beta_slow = 1;    // yarn: rotations at the ends of the ramp
  bool truncate = true;                    // yarn: whole numbers as the ramp's ends
  std::optional<double> attention_factor;  // yarn, factors
  std::optional<double> mscale, mscale_all_dimensions;  // yarn, when attention_factor is not given
  std::vector<float> factors;                           // factors: one per frequency

  bool operator==(const RopeSettings&) const = default;
};

// [rotary_dimensions / 2] frequencies, computed in double. Settings are valid (see the readers);
// rotary_dimensions is even, 0 for a model without rotary positions.
RopeConfig MakeRope(const RopeSettings& settings, int64_t rotary_dimensions);

// row [rotary_dimensions]: the cosines of a position's angles, then their sines, both times the
// attention factor. Angles are formed in double, so far positions are as exact as near ones.
void MakeRotation(const RopeConfig& rope, int64_t position, std::span<float> row);

// The divisors [n] that llama3 makes of the plain frequencies, as GGUF stores them in rope_freqs.
std::vector<float> Llama3Divisors(const RopeSettings& settings, int64_t rotary_dimensions);

}  // namespace weft
