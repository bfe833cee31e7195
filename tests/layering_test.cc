// The rules of docs/architecture.md about files: a floor includes itself and lower floors, a
// third-party header is included in its one place, and files stay readable.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weft {
namespace {

// Neighbours share a number and never include one another.
const std::map<std::string, int> kFloors = {
    {"base", 1},   {"tensor", 2},   {"nn", 3},      {"dataflow", 3}, {"environments", 4},
    {"replay", 4}, {"language", 4}, {"actors", 5},  {"learners", 5}, {"algorithms", 6},
    {"rlhf", 6},   {"bench", 7},    {"program", 8}, {"main.cc", 9},
};

struct ThirdParty {
  std::string_view prefix;  // of what stands between < and >
  std::regex files;         // that may include it
};

const std::vector<ThirdParty> kThirdParty = {
    {"box2d/",
     std::regex("environments/box2d/.*\\.(cc|h)|tests/environments/fast_joint_test\\.cc")},
    {"yaml-cpp/", std::regex("base/yaml\\.cc")},
    {"fmt/", std::regex("(tests/)?program/.*\\.cc")},
    {"CLI/", std::regex("program/command_line\\.h")},
    {"nlohmann/", std::regex("(tests/)?program/.*\\.cc|tests/program/"
                             "server_process\\.h|environments/python/python_worker\\.cc")},
    {"httplib.h", std::regex("program/http_server\\.cc|rlhf/http_client\\.cc")},
    {"pcre2.h", std::regex("language/tokenizer/regex\\.cc")},
    {"utf8proc.h", std::regex("language/unicode\\.cc")},
    {"zmq", std::regex("dataflow/zmq_.*\\.cc")},
    {"mujoco/",
     std::regex(
         "environments/mujoco/mujoco_.*\\.(cc|h)|environments/dm_control/suite_models\\.cc")},
    {"Eigen/", std::regex("tensor/kernels_cpu.*\\.(cc|h)")},
    {"cuda", std::regex("tensor/.*cuda.*")},
    {"gif_lib.h", std::regex("environments/drawing/gif_file\\.cc")},
    {"arrow/", std::regex("rlhf/parquet_library\\.cc")},
    {"parquet/", std::regex("rlhf/parquet_library\\.cc")},
    {"png.h", std::regex("environments/drawing/png_file\\.cc")},
    {"gtest/", std::regex("tests/.*")},
    {"gmock/", std::regex("tests/.*")},
};

// C++ headers have no point and no slash; the rest of the system is listed.
bool IsSystemHeader(std::string_view name) {
  static const std::set<std::string_view> kHeaders = {
      "dirent.h",    "dlfcn.h",     "fcntl.h",  "fenv.h",  "immintrin.h", "poll.h",    "pthread.h",
      "pty.h",       "sched.h",     "signal.h", "spawn.h", "strings.h",   "termios.h", "unistd.h",
      "x86intrin.h", "xmmintrin.h", "cpuid.h",  "netdb.h", "ifaddrs.h"};
  for (const char* folder : {"sys/", "linux/", "netinet/", "arpa/", "net/", "sanitizer/"}) {
    if (name.starts_with(folder)) return true;
  }
  return kHeaders.contains(name) || name.find_first_of("./") == std::string_view::npos;
}

struct SourceFile {
  std::string path;  // from the root of the project
  std::vector<std::string> lines;
};

// Every C++ and CUDA file of the project in the order of paths.
const std::vector<SourceFile>& Files() {
  static const auto* const kFiles = [] {
    const std::filesystem::path root = WEFT_SOURCE_FOLDER;
    auto* files = new std::vector<SourceFile>;
    for (const std::filesystem::path entry :
         {"main.cc", "base", "tensor", "nn", "dataflow", "environments", "replay", "language",
          "actors", "learners", "algorithms", "rlhf", "bench", "program", "tests"}) {
      const auto add = [&](const std::filesystem::path& path) {
        const std::string extension = path.extension().string();
        if (extension != ".h" && extension != ".cc" && extension != ".cu") return;
        SourceFile& file = files->emplace_back();
        file.path = std::filesystem::relative(path, root).generic_string();
        std::ifstream stream(path);
        for (std::string line; std::getline(stream, line);) file.lines.push_back(line);
      };
      if (std::filesystem::is_regular_file(root / entry)) add(root / entry);
      if (!std::filesystem::is_directory(root / entry)) continue;
      for (const auto& found : std::filesystem::recursive_directory_iterator(root / entry)) {
        if (found.is_regular_file()) add(found.path());
      }
    }
    std::sort(files->begin(), files->end(),
              [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
    return files;
  }();
  return *kFiles;
}

// Calls visit(file, line number, opening mark, name) for each #include.
template <class Visit>
void ForEachInclude(Visit visit) {
  static const std::regex kInclude("\\s*#\\s*include\\s*([<\"])([^>\"]+)[>\"].*");
  for (const SourceFile& file : Files()) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      if (file.lines[i].find("include") == std::string::npos) continue;
      std::smatch match;
      if (!std::regex_match(file.lines[i], match, kInclude)) continue;
      visit(file, i + 1, match[1].str()[0], match[2].str());
    }
  }
}

std::string Folder(const std::string& path) {
  return path.substr(0, path.find('/'));
}

TEST(Layering, FindsTheProject) {
  EXPECT_GT(Files().size(), 30u);
  int includes = 0;
  ForEachInclude([&](const SourceFile&, size_t, char, const std::string&) { ++includes; });
  EXPECT_GT(includes, 100);
}

TEST(Layering, AFloorIncludesItselfAndLowerFloorsOnly) {
  ForEachInclude([](const SourceFile& file, size_t line, char mark, const std::string& name) {
    if (mark != '"') return;
    const std::string from = Folder(file.path), to = Folder(name);
    if (from == "tests") return;
    ASSERT_TRUE(kFloors.contains(to)) << file.path << ":" << line << ": " << name
                                      << " is written from no floor of the project's root";
    EXPECT_TRUE(from == to || kFloors.at(to) < kFloors.at(from))
        << file.path << ":" << line << ": " << from << " may not include " << to;
  });
}

// The fragment, and rows that another process steps.
TEST(Layering, EnvironmentsMeetDataflowInTwoFiles) {
  ForEachInclude([](const SourceFile& file, size_t line, char mark, const std::string& name) {
    if (mark != '"' || Folder(file.path) != "environments" || Folder(name) != "dataflow") return;
    EXPECT_TRUE(file.path.starts_with("environments/environment_fragment.") ||
                file.path == "environments/python/python_worker.cc")
        << file.path << ":" << line << ": includes " << name;
  });
}

TEST(Layering, ThirdPartyHeadersAreIncludedInTheirOnePlace) {
  ForEachInclude([](const SourceFile& file, size_t line, char mark, const std::string& name) {
    if (mark != '<' || IsSystemHeader(name)) return;
    const auto found = std::find_if(kThirdParty.begin(), kThirdParty.end(), [&](const auto& entry) {
      return name.starts_with(entry.prefix);
    });
    ASSERT_NE(found, kThirdParty.end()) << file.path << ":" << line << ": <" << name
                                        << "> is a new dependency: it needs a place in this table";
    EXPECT_TRUE(std::regex_match(file.path, found->files))
        << file.path << ":" << line << ": <" << name << "> is not included here";
  });
}

TEST(Layering, DataflowKnowsNoWordOfReinforcementLearning) {
  static const std::regex kWords("\\b(environment|policy_loss|reward|episode|token|agent)s?\\b",
                                 std::regex::icase);
  for (const SourceFile& file : Files()) {
    if (Folder(file.path) != "dataflow") continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      // Comments may say what a thing is for.
      const std::string code = file.lines[i].substr(0, file.lines[i].find("//"));
      EXPECT_FALSE(std::regex_search(code, kWords)) << file.path << ":" << i + 1 << ": " << code;
    }
  }
}

TEST(Layering, FilesAreShortAndTheirLinesToo) {
  constexpr size_t kMaxLines = 600, kMaxColumns = 100;
  for (const SourceFile& file : Files()) {
    EXPECT_LE(file.lines.size(), kMaxLines) << file.path << ": split it";
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      EXPECT_EQ(line.find('\t'), std::string::npos) << file.path << ":" << i + 1 << ": a tab";
      const auto columns = std::count_if(line.begin(), line.end(), [](char c) {
        return (c & 0xC0) != 0x80;  // continuation bytes of UTF-8 take no column
      });
      EXPECT_LE(static_cast<size_t>(columns), kMaxColumns) << file.path << ":" << i + 1;
    }
  }
}

// Two types of one name are one to the linker: an inline destructor of either may be called for
// both.
TEST(Layering, NoTwoHeadersDefineATypeOfTheSameName) {
  static const std::regex kNamespace("namespace ([a-z0-9_:]+) \\{");
  static const std::regex kType(
      "(?:struct|class|enum class) (?:\\[\\[\\w:]+\\]\\] )?(\\w+)(?: [^;()]*)?");
  std::map<std::string, std::string> files;  // by the type's whole name
  for (const SourceFile& file : Files()) {
    if (!file.path.ends_with(".h") || Folder(file.path) == "tests") continue;
    std::string space;
    for (const std::string& line : file.lines) {
      std::smatch match;
      if (std::regex_search(line, match, kNamespace)) space = match[1];
      if (line == "namespace {") space.clear();  // each includer's own
      if (space.empty() || !std::regex_match(line, match, kType)) continue;
      const auto [found, is_new] = files.emplace(space + "::" + match[1].str(), file.path);
      EXPECT_TRUE(is_new || found->second == file.path)
          << found->first << " is defined in " << found->second << " and in " << file.path;
    }
  }
  EXPECT_GT(files.size(), 200u);
}

TEST(Layering, HeadersGuardThemselves) {
  for (const SourceFile& file : Files()) {
    if (!file.path.ends_with(".h")) continue;
    EXPECT_NE(std::find(file.lines.begin(), file.lines.end(), "#pragma once"), file.lines.end())
        << file.path;
  }
}

}  // namespace
}  // namespace weft
