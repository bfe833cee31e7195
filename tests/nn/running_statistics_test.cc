#include "nn/running_statistics.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "tests/nn/reference.h"

namespace weft {
namespace {

TEST(RunningStatistics, EqualsMeanAndPopulationVarianceOfAllRows) {
  RunningStatistics statistics(2, /*initial_count=*/0);
  statistics.Update(Tensor::From<double>({2, 2}, {1, 10, 3, 30}));
  statistics.Update(Tensor::From<float>({1, 1, 2}, {8, 20}));
  EXPECT_DOUBLE_EQ(statistics.mean()[0], 4);
  EXPECT_DOUBLE_EQ(statistics.variance()[0], (9 + 1 + 16) / 3.0);
  EXPECT_DOUBLE_EQ(statistics.mean()[1], 20);
  EXPECT_DOUBLE_EQ(statistics.variance()[1], 200 / 3.0);
  EXPECT_EQ(statistics.count(), 3);
}

TEST(RunningStatistics, SurvivesALargeOffset) {
  RunningStatistics statistics(1, /*initial_count=*/0);
  for (int i = 0; i < 100; ++i) statistics.Update(Tensor::From<double>({2}, {1e9, 1e9 + 2}));
  EXPECT_NEAR(statistics.variance()[0], 1, 1e-6);
}

TEST(RunningStatistics, NormaliseClipsAndScaleKeepsTheSign) {
  RunningStatistics statistics(1, /*initial_count=*/0);
  statistics.Update(Tensor::From<double>({2}, {3, 7}));  // mean 5, deviation 2
  const Tensor normalised = statistics.Normalise(Tensor::From<double>({3}, {5, 9, 1e6}), 10, 0);
  EXPECT_EQ(normalised.dtype(), DType::kFloat32);
  EXPECT_EQ(normalised.data<float>()[0], 0);
  EXPECT_EQ(normalised.data<float>()[1], 2);
  EXPECT_EQ(normalised.data<float>()[2], 10);
  EXPECT_EQ(statistics.Scale(Tensor::From<float>({1}, {3}), 10, 0).data<float>()[0], 1.5f);
}

TEST(RunningStatistics, StateIsExact) {
  RunningStatistics a(3), b(3);
  a.Update(Tensor::From<float>({2, 3}, {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.7f}));
  b.Load(a.Save());
  EXPECT_EQ(Hash(a.Save()), Hash(b.Save()));
  EXPECT_THROW(RunningStatistics(2).Load(a.Save()), Error);
}

TEST(RunningStatistics, RefusesWhatItCannotCount) {
  RunningStatistics statistics(3);
  EXPECT_THROW(statistics.Update(Tensor::Zeros({2, 2})), Error);
  EXPECT_THROW(statistics.Update(Tensor::Zeros({3}, DType::kUInt8)), Error);
}

TEST(RunningStatistics, EqualsReference) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap data = ReadSafetensors(ReferencePath("language/maths/value_based.safetensors"));
  RunningStatistics statistics(3);
  for (const std::string i : {"0", "1", "2"}) {
    statistics.Update(data.At("running_mean_var.batch" + i));
    const TensorMap state = statistics.Save();
    ExpectClose(state.At("mean"), data.At("running_mean_var.mean" + i), 1e-10, 0, "mean" + i);
    ExpectClose(state.At("variance"), data.At("running_mean_var.var" + i), 1e-10, 0, "var" + i);
  }
  ExpectClose(statistics.Normalise(data.At("running_mean_var.batch2"), 10),
              data.At("running_mean_var.normalised_batch2"), 1e-6, 1e-7, "normalised");
}

}  // namespace
}  // namespace weft
