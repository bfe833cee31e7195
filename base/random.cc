#include "base/random.h"

#include <bit>
#include <utility>

#include "base/check.h"

namespace weft {
namespace {

// 1 / 3, 1 / 5, ..., 1 / 23.
constexpr auto kAtanhSeries = [] {
  std::array<double, 11> series{};
  for (int n = 0; n < 11; ++n) series[n] = 1.0 / (2 * n + 3);
  return series;
}();

// Coefficients of z^1 ... z^n, z = x^2: -1/3!, 1/5!, ... (first = 1) or -1/2!, 1/4!, ... (first =
// 0).
template <size_t n>
constexpr std::array<double, n> TaylorSeries(int first) {
  std::array<double, n> series{};
  double factorial = 1;
  for (size_t k = 0; k < n; ++k) {
    const int power = first + 2 * static_cast<int>(k) + 2;
    factorial *= power * (power - 1);
    series[k] = (k % 2 == 0 ? -1 : 1) / factorial;
  }
  return series;
}
constexpr auto kSineSeries = TaylorSeries<7>(1);
constexpr auto kCosineSeries = TaylorSeries<8>(0);

// c[0] + c[1] z + ... by Horner's rule.
template <size_t n>
double Polynomial(const std::array<double, n>& c, double z) {
  double sum = c[n - 1];
  for (size_t k = n - 1; k > 0; --k) sum = sum * z + c[k - 1];
  return sum;
}

// Natural logarithm of x in (0, 1], relative error below 1e-15: x = 2^k m with m in [sqrt(1/2),
// sqrt(2)), log m = 2 atanh(s) with s = (m - 1) / (m + 1) and |s| < 0.172, whose series is cut
// after s^23 (the rest is below 1e-18).
double Log(double x) {
  constexpr double kLn2High = 0x1.62e42fee00000p-1;  // ln 2 to 33 bits, so k * kLn2High is exact
  constexpr double kLn2Low = 0x1.a39ef35793c76p-33;  // the rest
  // Subtracting the bits of sqrt(1/2) puts the cut between two exponents there.
  constexpr uint64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
  const auto bits = std::bit_cast<uint64_t>(x);
  const int64_t exponent = static_cast<int64_t>(bits - kSqrtHalf) >> 52;
  const double f = std::bit_cast<double>(bits - (static_cast<uint64_t>(exponent) << 52)) - 1;
  const double s = f / (2 + f);
  const double z = s * s;
  const auto k = static_cast<double>(exponent);
  return k * kLn2High + (2 * s + (2 * s * z * Polynomial(kAtanhSeries, z) + k * kLn2Low));
}

struct SinCos {
  double sin, cos;
};

// Sine and cosine of 2 pi turn for turn in [0, 1), absolute error below 1e-15: the nearest quarter
// turn is taken off exactly, the rest goes through Taylor series to x^15 and x^16 with |x| <= pi
// / 4.
SinCos SinCosTurn(double turn) {
  // NOLINTNEXTLINE(bugprone-incorrect-roundings): never negative, and either neighbour will do
  const int quarter = static_cast<int>(4 * turn + 0.5);
  const double x = 6.283185307179586477 * (turn - 0.25 * quarter);
  const double z = x * x;
  const double sine = x + x * z * Polynomial(kSineSeries, z);
  const double cosine = 1 + z * Polynomial(kCosineSeries, z);
  const double swapped_sine = quarter & 1 ? cosine : sine;
  const double swapped_cosine = quarter & 1 ? sine : cosine;
  return {quarter & 2 ? -swapped_sine : swapped_sine,
          (quarter + 1) & 2 ? -swapped_cosine : swapped_cosine};
}

// Box and Muller 1958: two independent normal numbers from two uniform ones.
SinCos NormalPair(uint64_t radius_bits, uint64_t turn_bits) {
  const double uniform = static_cast<double>((radius_bits >> 11) + 1) * 0x1p-53;  // (0, 1]
  const double radius = std::sqrt(-2 * Log(uniform));
  const SinCos turn = SinCosTurn(static_cast<double>(turn_bits >> 11) * 0x1p-53);
  return {radius * turn.sin, radius * turn.cos};
}

}  // namespace

double Rng::Normal() {
  const uint64_t radius_bits = NextU64();
  return NormalPair(radius_bits, NextU64()).cos;
}

uint64_t Rng::Below(uint64_t n) {
  WEFT_CHECK(n > 0) << "a draw below 0";
  if (n <= UINT32_MAX) {
    const auto bound = static_cast<uint32_t>(n);
    uint64_t product = uint64_t{NextU32()} * bound;
    if (static_cast<uint32_t>(product) < bound) {
      const uint32_t threshold = -bound % bound;  // 2^32 mod n
      while (static_cast<uint32_t>(product) < threshold) product = uint64_t{NextU32()} * bound;
    }
    return product >> 32;
  }
  using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(NextU64()) * n;
  if (static_cast<uint64_t>(product) < n) {
    const uint64_t threshold = -n % n;  // 2^64 mod n
    while (static_cast<uint64_t>(product) < threshold) product = static_cast<Wide>(NextU64()) * n;
  }
  return static_cast<uint64_t>(product >> 64);
}

void Rng::FillUniform(std::span<float> out) {
  for (float& value : out) value = UniformFloat();
}

void Rng::FillNormal(std::span<float> out) {
  for (size_t i = 0; i < out.size(); i += 2) {
    const uint64_t radius_bits = NextU64();
    const SinCos pair = NormalPair(radius_bits, NextU64());
    out[i] = static_cast<float>(pair.cos);
    if (i + 1 < out.size()) out[i + 1] = static_cast<float>(pair.sin);
  }
}

void Rng::Shuffle(std::span<int64_t> values) {
  for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[Below(i)]);
}

}  // namespace weft
