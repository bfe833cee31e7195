// The row of weft bench environments that runs Gymnasium's own vector environment beside weft's
// bridge to Python.
#include <cstdlib>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/program/weft_process.h"

namespace weft {
namespace {

constexpr char kRow[] = "python_Acrobot-v1_2_workers";

TEST(BenchBridge, MeasuresBothSidesInOneRun) {
  if (std::getenv("WEFT_PYTHON") == nullptr) {
    GTEST_SKIP() << "WEFT_PYTHON is unset: no Python with gymnasium, numpy and pyzmq";
  }
  const WeftProcess weft;
  const auto output = weft.Run(std::string("bench environments --json --only ") + kRow);
  ASSERT_EQ(output.status, 0) << output.error;
  ASSERT_FALSE(output.out.empty()) << output.error;
  const auto row = nlohmann::json::parse(output.LastLine());
  EXPECT_EQ(row.at("name"), kRow);
  const double ours = row.at("steps_per_second"), theirs = row.at("peer");
  EXPECT_GT(ours, 0);
  EXPECT_GT(theirs, 0);
  EXPECT_DOUBLE_EQ(row.at("ratio"), ours / theirs);
  EXPECT_EQ(row.at("bar"), theirs);
}

TEST(BenchBridge, IsLeftOutByNameWithoutPython) {
  const WeftProcess weft;
  const auto output = weft.Run(std::string("bench environments --json --only ") + kRow,
                               "env WEFT_PYTHON=/no/such/python");
  EXPECT_EQ(output.status, 0) << output.error;
  EXPECT_EQ(output.out, "");
  EXPECT_NE(output.error.find(std::string(kRow) + " is left out: cannot start /no/such/python"),
            std::string::npos)
      << output.error;
  const auto unknown = weft.Run("bench environments --only python_2_workers");
  EXPECT_EQ(unknown.status, 78) << unknown.error;
}

}  // namespace
}  // namespace weft
