// What the allocator of tensors keeps of memory that was given back (tensor/storage.h).
#pragma once

namespace weft {

// Returns it to the system, but for what other threads keep in their own lists (4 MiB each). For
// the end of a part of a program after which others need less: from here on as much is kept as they
// turn out to need.
void FreeCachedMemory();

}  // namespace weft
