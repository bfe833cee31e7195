// The part of verification that compares distributions: first states and the returns of the random
// policy.
#pragma once

#include "environments/environment_row.h"
#include "environments/verify/comparison.h"
#include "environments/verify/recording.h"

namespace weft {

// Means of returns and lengths of as many episodes of the uniform random policy as the tensors
// prefix + "return" and "length" hold, within `errors` standard errors of their difference.
void VerifyReturns(const Recording& recording, const std::string& prefix, double errors,
                   EnvironmentRow& row, Comparison& comparison);

// Draws as many first states and random episodes as were recorded, with a fixed seed, and compares
// means within five standard errors of their difference, deviations and extremes within what such
// samples differ by.
void VerifyStatistics(Recording& recording, EnvironmentRow& row, Comparison& comparison);

}  // namespace weft
