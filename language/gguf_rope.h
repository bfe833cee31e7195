// Rotary positions in GGUF: rope.freq_base, rope.scaling.*, and rope_freqs.weight, which divides
// each frequency by a number of its own.
#pragma once

#include <string>

#include "language/gguf.h"
#include "language/gguf_writer.h"
#include "language/model_description.h"

namespace weft {

// Fills description.rope and config.rope; prefix is the architecture with a point. Divisors that
// Llama 3's formula gives are read as such.
void ReadGgufRope(const GgufFile& file, const std::string& prefix, ModelDescription& description);

// Sets the keys and adds rope_freqs.weight when there are divisors.
void SetGgufRope(const ModelDescription& description, const std::string& prefix,
                 GgufWriter& writer);

}  // namespace weft
