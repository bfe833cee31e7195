// A look at a model file, and all that it includes, before MuJoCo sees it: what it names must lie
// in its own folder, and what it would generate must be bounded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

struct MjcfFiles {
  // The model, the MJCF files that it includes or attaches, then meshes, height fields and
  // pictures; those that are missing are left out.
  std::vector<std::string> paths;
  uint64_t asset_bytes = 0;  // of meshes, height fields and pictures together
  int64_t elements = 0;      // of all MJCF files, copies that MuJoCo generates included
  std::string commonest;     // tag of most of them
};

// Reads the MJCF files, but no asset. Throws Error(kConfig) "path:line: <element attribute=...>:
// reason" for a file outside the model's folder (absolute, through .. or through a link), for a
// time step that is not in (0, 1] s, for NaN, and for counts and sizes beyond what a model needs.
MjcfFiles InspectMjcf(const std::string& path);

}  // namespace weft
