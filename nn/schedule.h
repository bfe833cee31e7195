// A number that changes over the course of a run: learning rate, clip range, exploration.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace weft {

struct Schedule {
  double initial = 0, final = 0;
  double fraction = 1;  // of the run after which final is reached, in (0, 1]

  static Schedule Constant(double value) { return {value, value, 1}; }
  static Schedule Linear(double initial, double final, double fraction = 1) {
    return {initial, final, fraction};
  }
  // The names that configs use: "constant", or "linear" down to 0 at the end of the run.
  static const std::vector<std::string>& Names();
  static Schedule Named(const std::string& name, double value);

  // progress: the part of the run that is done, 0 at its begin, 1 at its end.
  double At(double progress) const {
    const double t = std::clamp(progress / fraction, 0.0, 1.0);
    return t < 1 ? initial + (final - initial) * t : final;
  }
};

}  // namespace weft
