// Models as users name them.
#pragma once

#include <string>

namespace weft {

// The path of a model: name_or_path itself when it is a file or a folder, or where the launcher's
// cache (${XDG_CACHE_HOME:-~/.cache}/weft) has a model that weft knows by name
// (smollm2-135m-instruct, all-minilm-l6-v2). Error(kUnavailable) that says what to run when that
// one is not fetched yet, Error(kConfig) when there is nothing of that name.
std::string ResolveModel(const std::string& name_or_path);

}  // namespace weft
