// Compiles model files of unknown origin. MuJoCo's compiler has no bounds of its own: some bytes of
// MJCF make it run for hours, take all memory, or end the process that it runs in. So it runs in a
// child process with bounds, which hands back the compiled model.
//
// The child is a fork without exec: no path to a program is needed, so any program that links weft
// has it. It touches nothing that threads of the parent may have been in the middle of, but malloc,
// which glibc makes safe, and it is ended when it does not answer.
#pragma once

#include <string>
#include <vector>

#include "environments/mujoco/mjcf_files.h"

namespace weft {

struct ModelBounds {
  double seconds;  // of one core
  uint64_t bytes;  // of memory
};

struct CompiledModel {
  std::vector<char> bytes;  // an MJB
  std::string warnings;     // of MuJoCo, "WARNING; " each
};

// Bounds that grow with the meshes and pictures that a model has.
ModelBounds BoundsOf(const MjcfFiles& files);

// Compiles files.paths[0] and tries the model: its arrays are finite where they must be, and it can
// be simulated from its first state and from its keyframes. Throws Error(kConfig) naming the file.
CompiledModel CompileInChild(const MjcfFiles& files, const ModelBounds& bounds);

}  // namespace weft
