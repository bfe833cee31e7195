// Which registered environments MuJoCo renders.
#pragma once

#include <algorithm>
#include <string>

namespace weft {

inline bool IsMujoco(const std::string& id) {
  static constexpr const char* kTasks[] = {"Ant-",      "HalfCheetah-", "Hopper-",  "Humanoid",
                                           "Inverted",  "Pusher-",      "Reacher-", "Swimmer-",
                                           "Walker2d-", "dm_control/"};
  return std::ranges::any_of(kTasks, [&](const char* task) { return id.starts_with(task); });
}

}  // namespace weft
