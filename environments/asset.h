// Model files that come with other packages and are fetched on first use (the MuJoCo XML of
// Gymnasium and dm_control).
#pragma once

#include <string>

namespace weft {

// Whether a name means one of those files: any but a path of the user's own, which begins with '/',
// '.' or '~' or has a "..".
bool IsStandardAsset(const std::string& name);

// The path of a model file: the user's own as it is; a standard one is looked up in the
// folder that the environment variable WEFT_ASSETS names, weft's cache
// (${XDG_CACHE_HOME:-~/.cache}/weft/, in gymnasium-1.4.0/assets and, for dm_control/suite/*, in
// dm_control-1.0.50) and the installed share/weft/assets, in this order. Throws Error(kUnavailable)
// naming the places and the fix when it is nowhere.
std::string AssetPath(const std::string& name);

}  // namespace weft
