// The part of verification that compares distributions: first states and the returns of the random
// policy.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/comparison.h"
#include "environments/environment_row.h"
#include "environments/verify/recording.h"

namespace weft {

// Writes the action for an observation (all leaves, in order) in the space's canonical form.
using Policy = std::function<void(std::span<const double> observation, void* action)>;

// What episodes came to, one number each.
struct Episodes {
  std::vector<double> returns, lengths, terminated;    // terminated: 1, or 0 by the time limit
  std::vector<std::vector<double>> first_observation;  // coordinate by coordinate
};

// With a fixed seed, up to the time limit.
Episodes PlayEpisodes(EnvironmentRow& row, int64_t count, const Policy& policy);
// Uniform, with a stream of its own.
Policy RandomPolicy(const EnvironmentSpec& spec);

// Compares the means of two samples within `errors` standard errors of their difference.
void CheckMean(const std::string& tensor, std::span<const double> got,
               std::span<const double> expected, double errors, Comparison& comparison);

// Means of returns and lengths of as many episodes of the uniform random policy as the tensors
// prefix + "return" and "length" hold, within `errors` standard errors of their difference.
void VerifyReturns(const Recording& recording, const std::string& prefix, double errors,
                   EnvironmentRow& row, Comparison& comparison);

// Draws as many first states and random episodes as were recorded, with a fixed seed, and compares
// means within five standard errors of their difference, deviations and extremes within what such
// samples differ by.
void VerifyStatistics(Recording& recording, EnvironmentRow& row, Comparison& comparison);

}  // namespace weft
