// The mathematics of RLHF (rlhf/advantages.h, policy_losses.h, preference_losses.h) against
// recorded values and gradients in double: ppo_rlhf, group_relative and preference of the maths
// folder of reference/language. Everything within 1e-10 relative.
#pragma once

#include <string>

#include "base/comparison.h"

namespace weft {

VerifyReport VerifyMaths(const std::string& folder);

}  // namespace weft
