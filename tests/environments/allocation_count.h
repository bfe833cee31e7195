// Counts the calls of operator new, of all threads: tests show that a step makes none.
#pragma once

#include <cstdint>

namespace weft {

int64_t AllocationCount();

}  // namespace weft
