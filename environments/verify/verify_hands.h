// The part of verification that replays hands of Blackjack-v1, recorded as the cards in the order
// in which they were drawn and what each action led to.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/comparison.h"
#include "environments/environment_row.h"
#include "environments/verify/recording.h"

namespace weft {

inline bool HoldsHands(const Recording& recording) {
  return recording.Has("cards") && recording.Has("trace");
}

// make: the environment with keyword arguments given as YAML; those of each variant are in the
// recording. Compares observations, rewards and ends exactly, and 130,000 drawn cards with the deck
// within six standard errors. Throws Error for a recording of another form.
void VerifyHands(
    const Recording& recording,
    const std::function<std::unique_ptr<EnvironmentRow>(const std::string& arguments)>& make,
    Comparison& comparison);

}  // namespace weft
