// The conformance check of a VectorEnvironment: the same episodes as in a batch, in every autoreset
// mode.
#pragma once

#include <string>

#include "environments/environment_config.h"

namespace weft {

// What is wrong, "" when nothing is. Two environments take random steps under actions of their own
// streams; rows of the config are not looked at.
std::string ModesAgree(const EnvironmentConfig& config);

}  // namespace weft
