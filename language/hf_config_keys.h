// What readers of config.json share: activations, flags, and the keys that no model of ours reads.
#pragma once

#include <string>

#include "language/json_keys.h"
#include "language/model_config.h"

namespace weft {

// name is the value of the key. Error(kInvalidArgument) for one that weft does not have.
FeedForwardActivation ReadHfActivation(JsonKeys& keys, const char* key, const std::string& name);

// A flag that must have this value, which is also its default.
void RequireHfFlag(JsonKeys& keys, const char* key, bool value);

// When all else was read: refuses keys that change results in any family, and names unknown ones in
// a warning.
void ReportOtherHfKeys(JsonKeys& keys);

}  // namespace weft
