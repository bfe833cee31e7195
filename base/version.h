// Which weft this is.
#pragma once

namespace weft {

extern const char* const kVersion;  // "0.1.0"
extern const char* const kGitHash;  // of the commit that was configured, "-dirty" with changes on
                                    // top; "unknown" outside git

}  // namespace weft
