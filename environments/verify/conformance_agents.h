// The conformance checks that only environments of several agents need; each returns what is wrong,
// "" when nothing is.
#pragma once

#include <string>

#include "environments/environment.h"

namespace weft {

// Names, and spaces no wider than the rows.
std::string AgentsAreSound(const EnvironmentSpec& spec);

// Environment 2 of a batch of three against itself alone, stepped by hand with the same random
// stream.
std::string WorldsAreAlone(const EnvironmentEntry& entry);

}  // namespace weft
