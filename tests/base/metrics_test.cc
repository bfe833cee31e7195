#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "tests/base/temporary_folder.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

TEST(MetricsWriter, WritesOneJsonObjectALineAndNullForWhatIsNotFinite) {
  const TemporaryFolder folder;
  {
    MetricsWriter writer(folder.path(), 0);
    writer.Write(4096, 0.5, {{"policy_loss", -0.0125}, {"value_loss", NAN}});
    writer.Write(8192, 1.25, {{"episode_return", 1e300}, {"ratio", 1.0 / 3}, {"x", -INFINITY}});
    writer.Flush();
  }
  EXPECT_EQ(ReadFile(folder.Path("metrics.jsonl")),
            "{\"step\":4096,\"wall_seconds\":0.5,\"policy_loss\":-0.0125,\"value_loss\":null}\n"
            "{\"step\":8192,\"wall_seconds\":1.25,\"episode_return\":1e+300,"
            "\"ratio\":0.3333333333333333,\"x\":null}\n");
  EXPECT_GT(ReadFile(folder.Path("events.out.tfevents.weft")).size(), 100u);
}

TEST(MetricsWriter, ResumingDropsLinesPastTheStepAndATornLine) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("metrics.jsonl");
  const std::string first = "{\"step\":100,\"wall_seconds\":1}\n",
                    second = "{\"step\":200,\"a\":1}\n";
  WriteFileAtomic(path, first + second + "{\"step\":300,\"a\":1}\n{\"step\":150,\"to");
  { MetricsWriter writer(folder.path(), 200); }
  EXPECT_EQ(ReadFile(path), first + second);
  { MetricsWriter writer(folder.path(), 199); }
  EXPECT_EQ(ReadFile(path), first);
  { MetricsWriter writer(folder.path(), 0); }
  EXPECT_EQ(ReadFile(path), "");
  WriteFileAtomic(path, "\n\n");
  { MetricsWriter writer(folder.path(), 5); }
  EXPECT_EQ(ReadFile(path), "");
}

TEST(MetricsWriter, AFullDiskWarnsOnceKeepsWholeLinesAndGoesOn) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit bound{500, 500};
    ::setrlimit(RLIMIT_FSIZE, &bound);
    if (::freopen(folder.Path("stderr").c_str(), "w", stderr) == nullptr) ::_exit(1);
    MetricsWriter writer(folder.path(), 0);
    for (int64_t step = 1; step < 100; ++step) writer.Write(step, 1.5, {{"loss", 0.5}});
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  const std::string lines = ReadFile(folder.Path("metrics.jsonl"));
  EXPECT_GT(lines.size(), 400u);
  EXPECT_EQ(lines.back(), '\n');
  const std::string said = ReadFile(folder.Path("stderr"));
  EXPECT_THAT(said, HasSubstr("File too large"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

}  // namespace
}  // namespace weft
