// What every environment must hold, checked from outside through the registry: the contract of
// environment.h and batch_environment.h as a list of claims. Run over the whole registry by the
// tests, and by hand on an environment of one's own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace weft {

struct ConformanceCheck {
  std::string claim;
  std::string problem;      // "" when the claim holds
  std::string remark = {};  // what may be meant so
};

// allocations: the number of allocations so far in this process; without it the claim about them is
// left out, as are those of one instance's state for environments that live elsewhere (Python).
// Throws Error for an unknown id only.
std::vector<ConformanceCheck> CheckConformance(const std::string& id,
                                               const std::function<int64_t()>& allocations = {});

}  // namespace weft
