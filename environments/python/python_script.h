// python/weft_environment.py as it was when weft was built, so that every installed form has it.
#pragma once

namespace weft {

extern const char* const kPythonScript;

}  // namespace weft
