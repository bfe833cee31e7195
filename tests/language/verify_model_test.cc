// Every model and GGUF of the reference data: logits, hidden states, log-probabilities, greedy
// continuations, losses and gradients within the tolerances of its page.
#include "language/verify_model.h"

#include <gtest/gtest.h>

#include "tests/language/reference_files.h"

namespace weft {
namespace {

TEST(VerifyModels, EveryRecordingOfTheReferenceHolds) {
  const std::string folder = ReferencePath("language");
  if (folder.empty()) GTEST_SKIP() << "WEFT_REFERENCE is unset: no reference data to compare with";
  ThreadPool pool(2);
  const VerifyReport report = VerifyModels({.pool = &pool}, folder);
  EXPECT_GE(report.files.size(), 30u);
  EXPECT_EQ(report.failed, 0) << ToText(report, false);
}

}  // namespace
}  // namespace weft
