#include "environments/dm_control/tolerance.h"

#include <cmath>
#include <numbers>

namespace weft {
namespace {

// 1 at 0, `value` at 1.
double Falloff(double x, Sigmoid sigmoid, double value) {
  switch (sigmoid) {
    case Sigmoid::kGaussian: {
      const double scaled = x * std::sqrt(-2 * std::log(value));
      return std::exp(-0.5 * scaled * scaled);
    }
    case Sigmoid::kHyperbolic:
      return 1 / std::cosh(x * std::acosh(1 / value));
    case Sigmoid::kLongTail: {
      const double scaled = x * std::sqrt(1 / value - 1);
      return 1 / (scaled * scaled + 1);
    }
    case Sigmoid::kReciprocal:
      return 1 / (std::abs(x) * (1 / value - 1) + 1);
    case Sigmoid::kCosine: {
      const double scaled = x * std::acos(2 * value - 1) / std::numbers::pi;
      return std::abs(scaled) < 1 ? (1 + std::cos(std::numbers::pi * scaled)) / 2 : 0;
    }
    case Sigmoid::kLinear: {
      const double scaled = x * (1 - value);
      return std::abs(scaled) < 1 ? 1 - scaled : 0;
    }
    case Sigmoid::kQuadratic: {
      const double scaled = x * std::sqrt(1 - value);
      return std::abs(scaled) < 1 ? 1 - scaled * scaled : 0;
    }
    case Sigmoid::kTanhSquared: {
      const double tanh = std::tanh(x * std::atanh(std::sqrt(1 - value)));
      return 1 - tanh * tanh;
    }
  }
  return 0;
}

}  // namespace

double Tolerance(double x, double low, double high, const Margin& margin) {
  if (low <= x && x <= high) return 1;
  if (margin.margin == 0) return 0;
  const double distance = (x < low ? low - x : x - high) / margin.margin;
  return Falloff(distance, margin.sigmoid, margin.value_at_margin);
}

}  // namespace weft
