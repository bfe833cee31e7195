// The cost of a control as Gymnasium computes it: in the precision of the action.
#pragma once

#include "environments/environment.h"
#include "environments/mujoco/numpy_sum.h"

namespace weft {

template <class T>
double ControlCostIn(ActionRow action, int64_t size, double weight) {
  const T sum = NumpySum<T>(size, [&](int64_t i) {
    const auto value = static_cast<T>(action.real(i));
    return value * value;
  });
  return static_cast<T>(weight) * sum;
}

// weight * sum of squares of the action's `size` numbers.
inline double ControlCost(ActionRow action, int64_t size, double weight) {
  return action.dtype() == DType::kFloat32 ? ControlCostIn<float>(action, size, weight)
                                           : ControlCostIn<double>(action, size, weight);
}

}  // namespace weft
