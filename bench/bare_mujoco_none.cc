// Stands in for bare_mujoco.cc in a build without MuJoCo.
#include "bench/script.h"

namespace weft {

bool HasBareMujoco(const std::string&) {
  return false;
}

std::unique_ptr<Player> MakeBareMujoco(const std::string&, const Script&, ThreadPool&) {
  return nullptr;
}

}  // namespace weft
