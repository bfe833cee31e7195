#include "program/verify_maths.h"

#include <cstdlib>
#include <gtest/gtest.h>

#include "tests/language/reference_files.h"

namespace weft {
namespace {

TEST(VerifyMaths, EveryMethodOfTheReferenceHolds) {
  const std::string folder = ReferencePath("language/maths");
  if (folder.empty()) GTEST_SKIP() << "WEFT_REFERENCE is unset: no reference data to compare with";
  const VerifyReport report = VerifyMaths(folder);
  EXPECT_EQ(report.failed, 0) << ToText(report, true);
  EXPECT_EQ(report.files.size(), 3u);
  EXPECT_GT(report.checked, 2500);
  ASSERT_EQ(report.skipped.size(), 1u);
  EXPECT_EQ(report.skipped[0].find("preference ranking_all_pairs:"), 0u) << report.skipped[0];
}

}  // namespace
}  // namespace weft
