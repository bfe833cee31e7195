// The programs that run peers of weft in Python, as they were when weft was built.
#pragma once

namespace weft {

extern const char* const kAsyncPeer;      // python/async_vector_environment.py
extern const char* const kLanguagePeers;  // python/language_peers.py
extern const char* const kTrlGrpo;        // python/trl_grpo.py

}  // namespace weft
