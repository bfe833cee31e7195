#include "nn/initialise.h"

#include <array>
#include <cmath>
#include <vector>

#include "base/check.h"

namespace weft {
namespace {

// Eight accumulators folded in a fixed tree, so that the compiler may use vectors without changing
// the sum.
double Dot(const double* a, const double* b, int64_t count) {
  std::array<double, 8> sums{};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (size_t lane = 0; lane < 8; ++lane)
      sums[lane] += a[i + static_cast<int64_t>(lane)] * b[i + static_cast<int64_t>(lane)];
  }
  for (; i < count; ++i) sums[static_cast<size_t>(i % 8)] += a[i] * b[i];
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

// column -= 2 v (v . column) for a unit vector v.
void Reflect(const double* v, double* column, int64_t count) {
  const double twice = 2 * Dot(v, column, count);
  for (int64_t i = 0; i < count; ++i) column[i] -= twice * v[i];
}

// Q [m, n] with orthonormal columns, column-major, m >= n.
std::vector<double> OrthonormalColumns(int64_t m, int64_t n, Rng& rng) {
  std::vector<double> a(static_cast<size_t>(m * n));
  for (double& value : a) value = rng.Normal();
  const auto column = [&](int64_t j) { return a.data() + j * m; };
  // Reflector j is kept below the diagonal of column j, its unit vector beginning at row j; the
  // sign of R's diagonal is minus the sign of the pivot.
  std::vector<double> signs(static_cast<size_t>(n));
  for (int64_t j = 0; j < n; ++j) {
    double* v = column(j) + j;
    const int64_t length = m - j;
    const double norm = std::sqrt(Dot(v, v, length));
    const double diagonal = v[0] > 0 ? -norm : norm;
    signs[static_cast<size_t>(j)] = diagonal < 0 ? -1.0 : 1.0;
    v[0] -= diagonal;
    const double length_of_v = std::sqrt(Dot(v, v, length));
    for (int64_t i = 0; i < length; ++i) v[i] = length_of_v > 0 ? v[i] / length_of_v : 0.0;
    for (int64_t k = j + 1; k < n; ++k) Reflect(v, column(k) + j, length);
  }
  // Q = H_0 .. H_{n-1} times the first n unit vectors, built from the last column back so that
  // reflectors not yet used stay in place.
  std::vector<double> q(static_cast<size_t>(m * n), 0.0);
  for (int64_t k = 0; k < n; ++k) {
    double* out = q.data() + k * m;
    out[k] = signs[static_cast<size_t>(k)];
    for (int64_t j = k; j >= 0; --j) Reflect(column(j) + j, out + j, m - j);
  }
  return q;
}

Tensor Uniform(const Shape& shape, int64_t fan_in, Rng& rng) {
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  Tensor tensor = Tensor::Empty(shape);
  for (float& value : tensor.data<float>()) value = static_cast<float>(rng.Uniform(-bound, bound));
  return tensor;
}

}  // namespace

Tensor OrthogonalMatrix(int64_t rows, int64_t columns, Rng& rng) {
  WEFT_CHECK(rows > 0 && columns > 0) << "an orthogonal matrix of " << rows << " x " << columns;
  const bool tall = rows >= columns;
  const int64_t m = tall ? rows : columns, n = tall ? columns : rows;
  const std::vector<double> q = OrthonormalColumns(m, n, rng);
  Tensor matrix = Tensor::Empty({rows, columns});
  const auto out = matrix.data<float>();
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      out[static_cast<size_t>(i * columns + j)] =
          static_cast<float>(q[static_cast<size_t>(tall ? j * m + i : i * m + j)]);
    }
  }
  return matrix;
}

Tensor MakeWeight(int64_t in, int64_t out, int64_t fan_in, const Initialisation& initialisation,
                  Rng& rng) {
  Tensor weight;
  switch (initialisation.kind) {
    case Initialisation::Kind::kOrthogonal:
      weight = OrthogonalMatrix(in, out, rng);
      for (float& value : weight.data<float>()) {
        value = static_cast<float>(value * initialisation.gain);
      }
      break;
    case Initialisation::Kind::kUniform:
      weight = Uniform({in, out}, fan_in, rng);
      break;
    case Initialisation::Kind::kZero:
      weight = Tensor::Zeros({in, out});
      break;
  }
  return weight.ToLayout(Layout::kPanels);
}

Tensor MakeBias(int64_t out, int64_t fan_in, const Initialisation& initialisation, Rng& rng) {
  if (initialisation.kind == Initialisation::Kind::kUniform) return Uniform({out}, fan_in, rng);
  return Tensor::Zeros({out});
}

}  // namespace weft
