#include "environments/mujoco/numpy_sum.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

// 1 + 1/2 + ... + 1/size in float32.
float Harmonic(int64_t size) {
  return NumpySum<float>(size, [](int64_t i) { return 1 / static_cast<float>(i + 1); });
}

// np.sum(np.float32(1) / np.arange(1, n + 1, dtype=np.float32)) of NumPy 2.4.6.
TEST(NumpySum, AddsInNumPysOrder) {
  EXPECT_EQ(Harmonic(0), 0x0.0p+0f);
  EXPECT_EQ(Harmonic(5), 0x1.2444460000000p+1f);
  EXPECT_EQ(Harmonic(8), 0x1.5be2c00000000p+1f);
  EXPECT_EQ(Harmonic(17), 0x1.b843440000000p+1f);
  EXPECT_EQ(Harmonic(100), 0x1.4bfe020000000p+2f);
}

}  // namespace
}  // namespace weft
