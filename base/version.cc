#include "base/version.h"

namespace weft {

const char* const kVersion = WEFT_VERSION;
const char* const kGitHash = WEFT_GIT_HASH;

}  // namespace weft
