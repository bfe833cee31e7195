// A model's config as GGUF metadata, and the divisors of rotary frequencies in rope_freqs.weight.
#pragma once

#include "language/gguf.h"
#include "language/gguf_writer.h"
#include "language/model_description.h"

namespace weft {

// Throws Error(kInvalidArgument) for an architecture, scaling or key that weft does not have,
// Error(kCorrupt) for wrong types and sizes, naming file and key.
ModelDescription ReadGgufConfig(const GgufFile& file);

// Sets the keys of ReadGgufConfig. What GGUF has no key for stands under weft.*, which other
// programs pass over: the family that shares an architecture, all end tokens, rope settings.
void SetGgufConfig(const ModelDescription& description, GgufWriter& writer);

}  // namespace weft
