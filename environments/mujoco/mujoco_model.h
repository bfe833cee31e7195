// MuJoCo's models, which all simulations of a file share.
#pragma once

#include <string>

struct mjModel_;
struct mjSpec_;

namespace weft {

// Changes a model between parsing and compiling.
using MujocoEdit = void (*)(mjSpec_& spec);

// The model of a file (as in asset.h), after `edit` if there is one. It is loaded on first use and
// lives as long as the process. The standard files are trusted; any other is inspected first
// (mjcf_files.h) and compiled by a child process (mujoco_compiler.h), so that it costs bounded time
// and memory, and an error, whatever it holds. Throws Error(kUnavailable) when there is no such
// file and Error(kConfig) for one that is refused.
const mjModel_* LoadMujocoModel(const std::string& xml_file, MujocoEdit edit = nullptr);

}  // namespace weft
