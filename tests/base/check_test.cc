#include "base/check.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Check, ComparisonNamesPlaceExpressionAndBothValues) {
  try {
    const int rows = 3;
    WEFT_CHECK_EQ(rows, 4) << "advantage rows";
    FAIL() << "the check did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    const std::string text = error.what();
    EXPECT_NE(text.find("check_test.cc:"), std::string::npos) << text;
    EXPECT_NE(text.find("rows == 4 (3 vs 4): advantage rows"), std::string::npos) << text;
  }
}

TEST(Check, ArgumentsAreEvaluatedOnceAndMessageOnlyOnFailure) {
  int calls = 0;
  const auto count = [&] { return ++calls; };
  WEFT_CHECK_EQ(count(), 1) << count();
  EXPECT_EQ(calls, 1);
}

TEST(Check, ContextIsPrependedOutermostLast) {
  Error error(ErrorCode::kDiverged, "loss is NaN");
  error.AddContext("step 12");
  error.AddContext("learner[0]");
  EXPECT_STREQ(error.what(), "learner[0]: step 12: loss is NaN");
}

TEST(Check, ExitCodesFollowSysexits) {
  EXPECT_EQ(ExitCode(ErrorCode::kConfig), 78);
  EXPECT_EQ(ExitCode(ErrorCode::kDiverged), 65);
  EXPECT_EQ(ExitCode(ErrorCode::kInternal), 70);
}

}  // namespace
}  // namespace weft
