// The part of verification that compares distributions: first states and the returns of the random
// policy.
#pragma once

#include "environments/comparison.h"
#include "environments/environment_row.h"
#include "environments/recording.h"

namespace weft {

// Draws as many first states and random episodes as were recorded, with a fixed seed, and compares
// means within five standard errors of their difference, deviations and extremes within what such
// samples differ by.
void VerifyStatistics(Recording& recording, EnvironmentRow& row, Comparison& comparison);

}  // namespace weft
