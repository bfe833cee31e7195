// Whether a registered environment can be made here: model files of another package may be missing.
#pragma once

#include <string>

#include "environments/environment.h"

namespace weft {

// "" when the environment can be made with its default arguments, else why not and what to do about
// it. Throws any Error but kUnavailable that making it throws.
std::string WhyUnavailable(const EnvironmentEntry& entry);

}  // namespace weft
