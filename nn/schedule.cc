#include "nn/schedule.h"

#include "base/check.h"

namespace weft {

const std::vector<std::string>& Schedule::Names() {
  static const auto* const names = new std::vector<std::string>{"constant", "linear"};
  return *names;
}

Schedule Schedule::Named(const std::string& name, double value) {
  if (name == "constant") return Constant(value);
  WEFT_CHECK_EQ(name, "linear") << "name of a schedule";
  return Linear(value, 0);
}

}  // namespace weft
