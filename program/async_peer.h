// python/async_vector_environment.py as it was when weft was built.
#pragma once

namespace weft {

extern const char* const kAsyncPeer;

}  // namespace weft
