#include "language/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace weft {
namespace {

double PlainFrequency(const RopeSettings& settings, int64_t index, int64_t dimensions) {
  return std::pow(settings.theta,
                  -2.0 * static_cast<double>(index) / static_cast<double>(dimensions));
}

// What a frequency is divided by.
double Llama3Divisor(const RopeSettings& settings, double frequency) {
  const double wavelength = 2 * std::numbers::pi / frequency;
  const auto context = static_cast<double>(settings.original_context);
  const double low = settings.low_frequency_factor, high = settings.high_frequency_factor;
  if (wavelength < context / high) return 1;
  if (wavelength > context / low) return settings.factor;
  const double smooth = (context / wavelength - low) / (high - low);
  return 1 / ((1 - smooth) / settings.factor + smooth);
}

// Where along the frequencies `rotations` full turns fit into the original context.
double YarnDimension(const RopeSettings& settings, double rotations, int64_t dimensions) {
  return static_cast<double>(dimensions) *
         std::log(static_cast<double>(settings.original_context) /
                  (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(settings.theta));
}

// Share of the scaled frequency at each index, from 0 to 1.
struct YarnRamp {
  double low, high;

  YarnRamp(const RopeSettings& settings, int64_t dimensions)
      : low(YarnDimension(settings, settings.beta_fast, dimensions)),
        high(YarnDimension(settings, settings.beta_slow, dimensions)) {
    if (settings.truncate) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, static_cast<double>(dimensions - 1));
    if (low == high) high += 0.001;
  }
  double At(int64_t index) const {
    return std::clamp((static_cast<double>(index) - low) / (high - low), 0.0, 1.0);
  }
};

double YarnScale(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

double AttentionFactor(const RopeSettings& settings) {
  if (settings.attention_factor) return *settings.attention_factor;
  if (settings.kind != RopeKind::kYarn) return 1;
  const double mscale = settings.mscale.value_or(0),
               all = settings.mscale_all_dimensions.value_or(0);
  if (mscale != 0 && all != 0) {
    return YarnScale(settings.factor, mscale) / YarnScale(settings.factor, all);
  }
  return YarnScale(settings.factor, 1);
}

}  // namespace

RopeConfig MakeRope(const RopeSettings& settings, int64_t rotary_dimensions) {
  RopeConfig rope;
  rope.rotary_dimensions = rotary_dimensions;
  rope.attention_factor = static_cast<float>(AttentionFactor(settings));
  WEFT_CHECK(settings.kind != RopeKind::kFactors ||
             static_cast<int64_t>(settings.factors.size()) == rotary_dimensions / 2)
      << "rope factors";
  const YarnRamp ramp(settings, rotary_dimensions);
  for (int64_t i = 0; i < rotary_dimensions / 2; ++i) {
    double frequency = PlainFrequency(settings, i, rotary_dimensions);
    switch (settings.kind) {
      case RopeKind::kDefault:
        break;
      case RopeKind::kLinear:
        frequency /= settings.factor;
        break;
      case RopeKind::kLlama3:
        frequency /= Llama3Divisor(settings, frequency);
        break;
      case RopeKind::kYarn: {
        const double share = ramp.At(i);
        frequency = frequency / settings.factor * share + frequency * (1 - share);
        break;
      }
      case RopeKind::kFactors:
        frequency /= static_cast<double>(settings.factors[static_cast<size_t>(i)]);
        break;
    }
    rope.inverse_frequencies.push_back(static_cast<float>(frequency));
  }
  return rope;
}

void MakeRotation(const RopeConfig& rope, int64_t position, std::span<float> row) {
  const size_t pairs = rope.inverse_frequencies.size();
  WEFT_CHECK_EQ(row.size(), 2 * pairs) << "rotary dimensions";
  for (size_t i = 0; i < pairs; ++i) {
    const double angle =
        static_cast<double>(position) * static_cast<double>(rope.inverse_frequencies[i]);
    row[i] = static_cast<float>(std::cos(angle) * static_cast<double>(rope.attention_factor));
    row[pairs + i] =
        static_cast<float>(std::sin(angle) * static_cast<double>(rope.attention_factor));
  }
}

std::vector<float> Llama3Divisors(const RopeSettings& settings, int64_t rotary_dimensions) {
  std::vector<float> divisors;
  for (int64_t i = 0; i < rotary_dimensions / 2; ++i) {
    divisors.push_back(static_cast<float>(
        Llama3Divisor(settings, PlainFrequency(settings, i, rotary_dimensions))));
  }
  return divisors;
}

}  // namespace weft
