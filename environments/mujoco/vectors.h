// Small vectors as spans: what observations and rewards of simulated bodies are put together from.
// Rotations are 3 x 3, row-major.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>

namespace weft {

// Copies values to `to` and returns the end: to put an observation together.
inline double* Append(std::span<const double> values, double* to) {
  return std::copy(values.begin(), values.end(), to);
}

inline double Norm(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

// Of vectors of the same size.
inline double Distance(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

// Vector `index` of an array [n, 3].
inline std::span<double> Vector(std::span<double> values, int64_t index) {
  return values.subspan(3 * static_cast<size_t>(index), 3);
}

// to - from, in the frame of a rotation.
inline std::array<double, 3> Egocentric(std::span<const double> from, std::span<const double> to,
                                        std::span<const double> rotation) {
  std::array<double, 3> vector{};
  for (size_t column = 0; column < 3; ++column) {
    for (size_t row = 0; row < 3; ++row)
      vector[column] += (to[row] - from[row]) * rotation[3 * row + column];
  }
  return vector;
}

}  // namespace weft
