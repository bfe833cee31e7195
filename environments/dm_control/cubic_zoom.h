// Enlarges a square grid by interpolation with cubic B-splines, as scipy.ndimage.zoom does with its
// defaults (Unser et al. 1993, "B-spline signal processing"): corners stay corners, and the grid is
// continued by reflection in its first and last samples.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace weft {

class CubicZoom {
 public:
  // From [from, from] to [to, to] samples; from >= 2.
  CubicZoom(int64_t from, int64_t to);

  // samples [from, from], enlarged [to, to]. Allocates nothing.
  void operator()(std::span<const double> samples, std::span<double> enlarged);

 private:
  // The four coefficients that make one output, and their weights.
  struct Support {
    std::array<size_t, 4> index;
    std::array<double, 4> weight;
  };

  size_t from_, to_;
  std::vector<Support> support_;                       // [to]
  std::vector<double> line_, coefficients_, halfway_;  // [from], [from, from], [from, to]
};

}  // namespace weft
