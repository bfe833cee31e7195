#include "tensor/kernels_math.h"

namespace weft::kernels {

// Payne and Hanek 1983: x 2/pi = m 2^e * 2/pi, of which only the 88 bits of 2/pi that matter modulo
// 4 are multiplied.
float ReduceLargeAngle(float x, int32_t* quadrant) {
  static constexpr uint32_t kTwoOverPi[] = {0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0,
                                            0xdb629599, 0x3c439041, 0xfe5163ab};
  *quadrant = 0;
  const auto bits = __builtin_bit_cast(uint32_t, x);
  const int biased = static_cast<int>(bits >> 23) & 0xff;
  if (biased == 0xff) return __builtin_nanf("");
  if (biased < 120) return x;  // |x| < 2^-7 is reduced already
  const uint32_t mantissa = (bits & 0x7fffff) | 0x800000;
  const int exponent = biased - 150;

  const int first =
      exponent >= 2 ? exponent - 1 : 1;  // leading bits before it only add multiples of 4
  unsigned __int128 window = 0;
  for (int i = 0; i < 88; ++i) {
    const int bit = first - 1 + i;
    window = window << 1 | (kTwoOverPi[bit / 32] >> (31 - bit % 32) & 1);
  }
  const int fraction_bits = 87 + first - exponent;
  const auto product = static_cast<unsigned __int128>(mantissa) * window;
  const auto half = static_cast<unsigned __int128>(1) << (fraction_bits - 1);
  const auto nearest = (product + half) >> fraction_bits;
  const auto fraction = static_cast<__int128>(product - (nearest << fraction_bits));
  const double scale = 1.5707963267948966 / static_cast<double>(half << 1);
  const auto r = static_cast<float>(static_cast<double>(fraction) * scale);
  const auto turns = static_cast<int32_t>(nearest & 3);
  const bool negative = bits >> 31;
  *quadrant = negative ? -turns : turns;
  return negative ? -r : r;
}

}  // namespace weft::kernels
