// docs/examples/own_environment as it was when weft was built.
#pragma once

namespace weft {

extern const char* const kExampleSource;
extern const char* const kExampleConfig;

}  // namespace weft
