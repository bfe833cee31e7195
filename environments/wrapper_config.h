// One entry of a config's `environment.wrappers`, such as {name: frame_stack, count: 4}.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "environments/wrappers.h"

namespace weft {

// Which fields count depends on the name.
struct WrapperConfig : Config {
  // Throws Error(kConfig) for a name that no wrapper has.
  explicit WrapperConfig(const std::string& wrapper_name);
  void Fields(FieldVisitor& visitor) override;
  void Check() const override;

  // The batch with this wrapper around it; options: those of the batch.
  std::unique_ptr<BatchEnvironment> Wrap(std::unique_ptr<BatchEnvironment> batch,
                                         const BatchOptions& options) const;

  std::string name;
  int64_t count = 4;                // frame_stack: observations; action_repeat: steps
  double low = -1, high = 1;        // clip_reward, clip_observation
  int64_t width = 84, height = 84;  // pixels, resize
  std::string camera;               // pixels
  bool keep_state = false;          // pixels
  double probability = 0.25;        // sticky_actions
  RewardShaping shaping;            // reward_shaping
  std::string share = "mean";       // share_reward
};

}  // namespace weft
