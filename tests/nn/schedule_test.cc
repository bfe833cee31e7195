#include "nn/schedule.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "tests/nn/reference.h"

namespace weft {
namespace {

TEST(Schedule, LinearReachesItsEndAndStaysThere) {
  const Schedule epsilon = Schedule::Linear(1, 0.05, 0.2);
  EXPECT_EQ(epsilon.At(0), 1);
  EXPECT_DOUBLE_EQ(epsilon.At(0.1), 0.525);
  EXPECT_EQ(epsilon.At(0.2), 0.05);
  EXPECT_EQ(epsilon.At(1), 0.05);
  EXPECT_EQ(epsilon.At(-1), 1);
}

TEST(Schedule, NamesAreThoseThatNamedTakes) {
  for (const std::string& name : Schedule::Names()) {
    EXPECT_EQ(Schedule::Named(name, 3e-4).At(0), 3e-4);
  }
  EXPECT_EQ(Schedule::Named("linear", 3e-4).At(1), 0);
  EXPECT_EQ(Schedule::Named("constant", 3e-4).At(1), 3e-4);
  EXPECT_THROW(Schedule::Named("cosine", 1), Error);
}

TEST(Schedule, LinearEqualsReference) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap data = ReadSafetensors(ReferencePath("language/maths/optimisers.safetensors"));
  const Tensor& expected = data.At("linear_progress.sb3_linear");
  const Schedule schedule = Schedule::Named("linear", 1e-3);
  for (size_t t = 0; t <= 40; ++t) {
    EXPECT_NEAR(schedule.At(static_cast<double>(t) / 40), Element(expected, t), 1e-12) << t;
  }
}

}  // namespace
}  // namespace weft
