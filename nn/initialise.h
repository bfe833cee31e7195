// Initial values of parameters. All randomness comes from the Rng handed in, all arithmetic is in
// double and in a fixed order, so equal generators give equal networks everywhere.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "tensor/tensor.h"

namespace weft {

// How a layer's weight begins; its bias is zero with kOrthogonal and kZero.
struct Initialisation {
  enum class Kind : uint8_t {
    kOrthogonal,  // Saxe et al. 2014: rows or columns orthonormal, whichever are fewer, times gain
    kUniform,     // torch's Linear and Conv2d: weight and bias uniform in +-1/sqrt(fan in)
    kZero,
  };
  Kind kind = Kind::kOrthogonal;
  double gain = 1.0;

  static Initialisation Orthogonal(double gain) { return {Kind::kOrthogonal, gain}; }
  static Initialisation Uniform() { return {Kind::kUniform, 1.0}; }
  static Initialisation Zero() { return {Kind::kZero, 1.0}; }
};

// A new weight [in, out] in panels and a new bias [out]. fan_in is what kUniform divides by: `in`
// but for recurrent layers.
Tensor MakeWeight(int64_t in, int64_t out, int64_t fan_in, const Initialisation& initialisation,
                  Rng& rng);
Tensor MakeBias(int64_t out, int64_t fan_in, const Initialisation& initialisation, Rng& rng);

// A matrix [rows, columns], row-major, whose shorter side's vectors are orthonormal: Q of a
// Householder QR of a normal matrix, columns signed so that R's diagonal is positive, which makes Q
// uniform (Mezzadri 2007). O(long * short^2).
Tensor OrthogonalMatrix(int64_t rows, int64_t columns, Rng& rng);

}  // namespace weft
