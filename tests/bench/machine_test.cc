#include "bench/machine.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Machine, FiguresAreThoseOfAComputer) {
  const MachineFigures figures = MeasureMachine(2);
  EXPECT_EQ(figures.threads, 2);
  // A core from 2010 to 2040: 0.05 for fmaf in software.
  for (const double gflops :
       {figures.gflops_1, figures.gflops_n, figures.bf16_gflops_1, figures.bf16_gflops_n}) {
    EXPECT_GT(gflops, 0.05);
    EXPECT_LT(gflops, 1e5);
  }
  for (const double gbytes : {figures.gbytes_1, figures.gbytes_n}) {
    EXPECT_GT(gbytes, 0.2);
    EXPECT_LT(gbytes, 1e4);
  }
}

}  // namespace
}  // namespace weft
