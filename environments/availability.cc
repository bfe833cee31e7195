#include "environments/availability.h"

#include "base/check.h"

namespace weft {

std::string WhyUnavailable(const EnvironmentEntry& entry) {
  try {
    entry.Spec(*entry.make_arguments());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable) throw;
    return error.message();
  }
  return "";
}

}  // namespace weft
