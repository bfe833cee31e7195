#include "environments/environment.h"

namespace weft {

Registry<EnvironmentEntry>& Environments() {
  // Never destroyed: entries are read while the process ends.
  static auto& registry = *new Registry<EnvironmentEntry>("environment");
  return registry;
}

}  // namespace weft
