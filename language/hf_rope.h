// Rotary positions in a Hugging Face config.json: rope_parameters (transformers 5), or rope_theta
// with rope_scaling (before), which may spell rope_type as type.
#pragma once

#include "language/json_keys.h"
#include "language/model_description.h"

namespace weft {

// Fills description.rope and config.rope from the keys of a config whose head_dimension and context
// are set. rotary_fraction is the family's default share of a head that turns. A type that weft
// does not have (dynamic, or longrope whose two lists differ) is Error(kInvalidArgument).
void ReadHfRope(JsonKeys& keys, double default_theta, double rotary_fraction,
                ModelDescription& description);

// Sets rope_theta and rope_scaling, the spelling that all versions of transformers read.
void SetHfRope(const ModelDescription& description, JsonValue& config);

}  // namespace weft
