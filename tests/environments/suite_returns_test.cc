// Returns of the random policy on dm_control's tasks against those recorded of the original, domain
// by domain: full episodes, so these take seconds.
#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

#include "environments/availability.h"
#include "environments/environment.h"
#include "environments/verify/verify.h"
#include "nn/safetensors.h"
#include "tests/base/temporary_folder.h"

namespace weft {
namespace {

class SuiteReturns : public testing::TestWithParam<const char*> {};

TEST_P(SuiteReturns, HaveTheRecordedMeans) {
  const char* reference = std::getenv("WEFT_REFERENCE");
  if (reference == nullptr) GTEST_SKIP() << "WEFT_REFERENCE does not name the reference data";
  const std::string why = WhyUnavailable(Environments().At("dm_control/walker-walk"));
  if (!why.empty()) GTEST_SKIP() << why;
  SafetensorsMetadata metadata;
  TensorMap of_domain;
  const std::string domain = std::string(GetParam()) + "-";
  int64_t tasks = 0;
  for (const auto& [name, tensor] : ReadSafetensors(
           std::string(reference) + "/environments/dmc_random_returns.safetensors", &metadata)) {
    if (!name.text().starts_with(domain)) continue;
    of_domain.Set(name, tensor);
    tasks += name.text().ends_with(".return");
  }
  ASSERT_GT(tasks, 0);
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/returns.safetensors";
  WriteSafetensors(path, of_domain, metadata);
  const VerifyReport report = VerifyEnvironmentFile("", path);
  EXPECT_GE(report.checked, tasks);
  EXPECT_EQ(report.failed, 0) << ToText(report, true);
}
INSTANTIATE_TEST_SUITE_P(Domains, SuiteReturns,
                         testing::Values("acrobot", "ball_in_cup", "cartpole", "cheetah", "finger",
                                         "fish", "hopper", "humanoid", "manipulator", "pendulum",
                                         "point_mass", "reacher", "swimmer", "walker"),
                         [](const auto& parameter) { return std::string(parameter.param); });

}  // namespace
}  // namespace weft
