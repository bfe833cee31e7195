// Squares as NumPy's float64 scalars compute x ** 2: by pow, whose result is off by one in the last
// place of x * x in one of a thousand cases. (np.square multiplies.)
#pragma once

#include <cmath>

namespace weft {

inline double NumpySquare(double x) {
  static const volatile double two = 2;  // a constant exponent would be compiled to x * x
  return std::pow(x, two);
}

}  // namespace weft
