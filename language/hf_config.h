// config.json and generation_config.json of a Hugging Face folder, read in the spellings of
// transformers 4 and 5 and written in the one that both read.
#pragma once

#include <string>

#include "language/json.h"
#include "language/model_description.h"
#include "language/weight_type.h"

namespace weft {

// Keys that would change results and that weft does not have, unknown families and values are
// Error(kInvalidArgument) naming file and key; wrong types and sizes Error(kCorrupt). Unknown keys
// are named in one warning. `file` stands for the file in messages.
ModelDescription ReadHfConfig(const JsonValue& json, const std::string& file);

// Adds generation_config.json; its end tokens replace those of config.json.
void ReadHfGeneration(const JsonValue& json, const std::string& file,
                      ModelDescription& description);

// The files' contents. type names the type of the weights.
JsonValue MakeHfConfig(const ModelDescription& description, WeightType type);
JsonValue MakeHfGeneration(const ModelDescription& description);

}  // namespace weft
