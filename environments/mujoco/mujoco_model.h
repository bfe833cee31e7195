// MuJoCo's models, which all simulations of a file share, and its messages: errors become
// Error(kInternal), warnings go to the log.
#pragma once

#include <string>

struct mjModel_;
struct mjSpec_;

namespace weft {

// Changes a model between parsing and compiling.
using MujocoEdit = void (*)(mjSpec_& spec);

// The model of a file (as in asset.h), after `edit` if there is one. It is loaded on first use and
// lives as long as the process. Throws Error(kUnavailable) when there is no such file and
// Error(kConfig) when MuJoCo refuses it.
const mjModel_* LoadMujocoModel(const std::string& xml_file, MujocoEdit edit = nullptr);

}  // namespace weft
