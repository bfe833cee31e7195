#include "environments/dm_control/cubic_zoom.h"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

// Samples to the coefficients of the spline through them, in place: a causal and an anticausal
// recursive filter with the pole z (equations 2.5 and 2.6).
void Filter(std::span<double> line) {
  const double z = std::sqrt(3.0) - 2;
  const auto n = static_cast<int64_t>(line.size());
  const auto at = [&](int64_t i) -> double& { return line[static_cast<size_t>(i)]; };
  for (double& value : line) value *= (1 - z) * (1 - 1 / z);
  // The first value of the causal filter: the sum over the samples that reflection continues.
  double sum = at(0) + std::pow(z, static_cast<double>(n - 1)) * at(n - 1);
  double ahead = z, back = std::pow(z, static_cast<double>(2 * n - 3));
  for (int64_t i = 1; i < n - 1; ++i) {
    sum += (ahead + back) * at(i);
    ahead *= z;
    back /= z;
  }
  at(0) = sum / (1 - std::pow(z, static_cast<double>(2 * n - 2)));
  for (int64_t i = 1; i < n; ++i) at(i) += z * at(i - 1);
  at(n - 1) = z / (z * z - 1) * (at(n - 1) + z * at(n - 2));
  for (int64_t i = n - 2; i >= 0; --i) at(i) = z * (at(i + 1) - at(i));
}

}  // namespace

CubicZoom::CubicZoom(int64_t from, int64_t to)
    : from_(static_cast<size_t>(from)),
      to_(static_cast<size_t>(to)),
      line_(from_),
      coefficients_(from_ * from_),
      halfway_(from_ * to_) {
  for (int64_t i = 0; i < to; ++i) {
    const double position =
        static_cast<double>(i) * static_cast<double>(from - 1) / static_cast<double>(to - 1);
    const double floor = std::floor(position);
    const double t = position - floor, u = 1 - t;
    Support& support = support_.emplace_back();
    support.weight = {u * u * u / 6, (t * t * (t - 2) * 3 + 4) / 6, (u * u * (u - 2) * 3 + 4) / 6,
                      t * t * t / 6};
    for (int64_t k = 0; k < 4; ++k) {
      int64_t index = std::abs(static_cast<int64_t>(floor) - 1 + k);
      if (index >= from) index = 2 * (from - 1) - index;
      support.index[static_cast<size_t>(k)] = static_cast<size_t>(index);
    }
  }
}

void CubicZoom::operator()(std::span<const double> samples, std::span<double> enlarged) {
  std::copy(samples.begin(), samples.end(), coefficients_.begin());
  const std::span<double> coefficients(coefficients_);
  for (size_t column = 0; column < from_; ++column) {
    for (size_t row = 0; row < from_; ++row) line_[row] = coefficients[row * from_ + column];
    Filter(line_);
    for (size_t row = 0; row < from_; ++row) coefficients[row * from_ + column] = line_[row];
  }
  for (size_t row = 0; row < from_; ++row) Filter(coefficients.subspan(row * from_, from_));

  const auto sum = [](const Support& support, const double* values, size_t stride) {
    double total = 0;
    for (size_t k = 0; k < 4; ++k) total += support.weight[k] * values[support.index[k] * stride];
    return total;
  };
  for (size_t row = 0; row < from_; ++row) {
    for (size_t i = 0; i < to_; ++i)
      halfway_[row * to_ + i] = sum(support_[i], &coefficients[row * from_], 1);
  }
  for (size_t i = 0; i < to_; ++i) {
    for (size_t column = 0; column < to_; ++column)
      enlarged[i * to_ + column] = sum(support_[i], &halfway_[column], to_);
  }
}

}  // namespace weft
