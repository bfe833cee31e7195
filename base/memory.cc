#include "base/memory.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace weft {
namespace {

// The number behind a word at the beginning of a line.
std::optional<int64_t> NumberBehind(const std::string& path, const std::string& word) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first;
    int64_t number = 0;
    if (words >> first >> number && first == word) return number;
  }
  return std::nullopt;
}

std::optional<int64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  int64_t number = 0;
  if (file >> number) return number;  // "max" is none
  return std::nullopt;
}

struct GroupFiles {
  const char *limit, *usage, *statistics_prefix;
};
constexpr GroupFiles kVersion1 = {"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_"};
constexpr GroupFiles kVersion2 = {"/memory.max", "/memory.current", ""};

// What the limits of a group and of those above it leave, -1 without a limit. In a container the
// group's own path may be missing below `mount`; the groups above it are then looked at.
int64_t LeftByGroups(const std::string& mount, std::string group, const GroupFiles& files) {
  int64_t left = -1;
  for (;; group.resize(group.rfind('/'))) {
    if (group == "/") group.clear();
    const std::string folder = mount + group;
    const auto limit = NumberIn(folder + files.limit), used = NumberIn(folder + files.usage);
    if (limit && used) {
      int64_t taken = *used;
      for (const char* kind : {"active_file", "inactive_file"}) {
        const std::string word = std::string(files.statistics_prefix) + kind;
        taken -= NumberBehind(folder + "/memory.stat", word).value_or(0);
      }
      const int64_t here = std::max<int64_t>(0, *limit - std::max<int64_t>(0, taken));
      left = left < 0 ? here : std::min(left, here);
    }
    if (group.empty()) return left;
  }
}

}  // namespace

int64_t FreeMemory(const std::string& root) {
  int64_t free = -1;
  if (const auto kilobytes = NumberBehind(root + "/proc/meminfo", "MemAvailable:")) {
    free = *kilobytes * 1024;
  }
  std::ifstream groups(root + "/proc/self/cgroup");  // lines "number:controllers:path"
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    const std::string mount = root + "/sys/fs/cgroup";
    int64_t left = -1;
    if (controllers == ",,") {
      left = LeftByGroups(mount, path, kVersion2);
    } else if (controllers.find(",memory,") != std::string::npos) {
      left = LeftByGroups(mount + "/memory", path, kVersion1);
    }
    if (left >= 0) free = free < 0 ? left : std::min(free, left);
  }
  return free;
}

void ReleasePages(std::span<const uint8_t> mapped) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(mapped.data());
  const uintptr_t begin = (first + page - 1) / page * page;
  const uintptr_t end = (first + mapped.size()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

int64_t PeakMemory() {
  struct rusage self {
  }, children{};
  getrusage(RUSAGE_SELF, &self);
  getrusage(RUSAGE_CHILDREN, &children);
  return int64_t{1024} * std::max(self.ru_maxrss, children.ru_maxrss);
}

}  // namespace weft
