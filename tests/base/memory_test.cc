#include "base/memory.h"

#include <gtest/gtest.h>
#include <vector>

#include "base/file.h"
#include "tests/base/temporary_folder.h"

namespace weft {
namespace {

constexpr int64_t kMegabyte = 1 << 20;

class FreeMemoryOf : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::string whole = folder_.path() + path;
    MakeDirectories(whole.substr(0, whole.rfind('/')));
    WriteFileAtomic(whole, text);
  }
  int64_t Free() const { return FreeMemory(folder_.path()); }

 private:
  const TemporaryFolder folder_;
};

TEST_F(FreeMemoryOf, ASystemThatSaysNothingIsUnknown) {
  EXPECT_EQ(Free(), -1);
}

TEST_F(FreeMemoryOf, AMachineWithoutLimitsIsWhatIsAvailable) {
  Write("/proc/meminfo", "MemTotal:  9000 kB\nMemFree: 10 kB\nMemAvailable:    2048 kB\n");
  Write("/proc/self/cgroup", "0::/user/session\n");
  Write("/sys/fs/cgroup/user/memory.max", "max\n");
  Write("/sys/fs/cgroup/user/memory.current", "5\n");
  EXPECT_EQ(Free(), 2 * kMegabyte);
}

TEST_F(FreeMemoryOf, AGroupIsWhatTheNarrowestOfItsLimitsLeaves) {
  Write("/proc/meminfo", "MemAvailable: 1048576 kB\n");
  Write("/proc/self/cgroup", "0::/pod/container\n");
  Write("/sys/fs/cgroup/pod/container/memory.max", "104857600\n");  // 100 MiB
  Write("/sys/fs/cgroup/pod/container/memory.current", "20971520\n");
  Write("/sys/fs/cgroup/pod/container/memory.stat",
        "anon 10485760\nactive_file 1048576\ninactive_file 9437184\n");
  EXPECT_EQ(Free(), 90 * kMegabyte) << "file pages are free";
  Write("/sys/fs/cgroup/pod/memory.max", "52428800\n");
  Write("/sys/fs/cgroup/pod/memory.current", "62914560\n");
  EXPECT_EQ(Free(), 0);
}

TEST_F(FreeMemoryOf, AContainerOfVersionOneSeesItsLimitsAtTheRoot) {
  Write("/proc/meminfo", "MemAvailable: 1048576 kB\n");
  Write("/proc/self/cgroup", "3:cpu,memory:/docker/0123\n0::/\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "52428800\n");
  Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "10485760\n");
  Write("/sys/fs/cgroup/memory/memory.stat", "cache 7\ntotal_inactive_file 5242880\n");
  EXPECT_EQ(Free(), 45 * kMegabyte);
}

TEST(PeakMemory, GrowsWithWhatIsTouched) {
  const int64_t before = PeakMemory();
  const std::vector<char> touched(static_cast<size_t>(before) + 64 * kMegabyte, 1);
  EXPECT_GE(PeakMemory(), before + 60 * kMegabyte) << touched.size();
}

}  // namespace
}  // namespace weft
