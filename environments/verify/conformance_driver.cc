#include "environments/verify/conformance_driver.h"

namespace weft {

uint64_t HashOf(const TimeStep& step) {
  TensorMap all = step.observation;
  all.Set("weft.reward", step.reward);
  all.Set("weft.discount", step.discount);
  all.Set("weft.type", step.type);
  all.Set("weft.episode_id", step.episode_id);
  return Hash(all);
}

}  // namespace weft
