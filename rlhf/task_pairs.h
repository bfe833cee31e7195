// Preference pairs of a checkable task whose rejected answer looks as good as the chosen one, so
// that the prompt must be read to tell them apart: every other pair rejects an answer of the wrong
// kind (sort3: the numbers in another order; max4, min3: another of the numbers), the rest one that
// would be right for other numbers (sort3: an ascending list with one number replaced; max4: a
// number above the largest; min3: below the smallest).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rlhf/dataset.h"

namespace weft {

// Of the prompts that training begins with for this seed, or of the held-out ones, of which there
// are 200.
std::vector<DataRow> BalancedPairs(const std::string& task, uint64_t seed, int64_t count,
                                   bool held_out);

}  // namespace weft
