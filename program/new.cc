// weft new: the files of an environment that works, for its author to change. What it writes is the
// project of docs/examples/own_environment, or the task of docs/examples/mujoco_task, under another
// name.
#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/check.h"
#include "base/file.h"
#include "base/text.h"
#include "environments/environment.h"
#include "program/commands.h"
#include "program/example.h"

namespace weft {
namespace {

struct Names {
  std::string id;    // MyLamp-v0
  std::string type;  // MyLamp
  std::string file;  // my_lamp
};

Names NamesOf(const std::string& name) {
  static const std::regex kWords("[A-Za-z][A-Za-z0-9_]*");
  if (!std::regex_match(name, kWords)) {
    throw Error(ErrorCode::kConfig, "\"" + name +
                                        "\" cannot name an environment: letters, digits " +
                                        "and _ only, a letter first, such as MyLamp");
  }
  Names names;
  bool starts = true;  // a word
  for (const char c : name) {
    if (c == '_') {
      starts = true;
      continue;
    }
    const auto letter = static_cast<unsigned char>(c);
    starts = starts || (std::isupper(letter) && names.type.size() > 0);
    if (starts && !names.file.empty()) names.file += '_';
    names.file += static_cast<char>(std::tolower(letter));
    names.type += starts ? static_cast<char>(std::toupper(letter)) : c;
    starts = false;
  }
  names.id = names.type + "-v0";
  return names;
}

std::string Renamed(const std::string& example, const Names& names) {
  return std::regex_replace(example, std::regex("\\bCorridor\\b"), names.type);
}

// Puts a line among its like, which stand in alphabetical order.
std::string WithLine(const std::string& text, const std::string& line) {
  static const std::regex kSource("  [a-z0-9_]+\\.cc");
  std::string result;
  bool placed = false;
  bool inside = false;  // the list of sources
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string old = text.substr(begin, end - begin);
    const bool source = std::regex_match(old, kSource);
    if (!placed && ((source && line < old) || (inside && !source))) {
      result += line + "\n";
      placed = true;
    }
    inside = source;
    result += old + "\n";
    begin = end + 1;
  }
  if (!placed) throw Error(ErrorCode::kConfig, "CMakeLists.txt has no list of sources to join");
  return result;
}

std::string TestOf(const Names& names) {
  return fmt::format(R"(#include <gtest/gtest.h>

#include "environments/environment_row.h"

namespace weft {{
namespace {{

TEST({0}, TheLitEndIsWorthOne) {{
  const EnvironmentEntry& entry = Environments().At("{1}");
  EnvironmentRow row(entry.make(*entry.make_arguments()));
  Rng rng(1, Purpose::kTest);
  const int64_t right = 1;
  for (const double lamp : {{0.0, 8.0}}) {{
    row.SetState(std::vector<double>{{7, lamp}});
    row.Step(ActionRow(&right, DType::kInt64), rng);
    EXPECT_EQ(row.reward(), lamp == 8 ? 1 : 0);
    EXPECT_EQ(row.discount(), 0);
  }}
}}

}}  // namespace
}}  // namespace weft
)",
                     names.type, names.id);
}

std::string ProjectOf(const Names& names) {
  return fmt::format(R"(cmake_minimum_required(VERSION 3.24)
project({0} LANGUAGES CXX)
find_package(weft REQUIRED)

# A whole weft that knows one environment more.
add_executable({0} {0}.cc)
target_link_libraries({0} PRIVATE weft::main)

enable_testing()
add_test(NAME contract COMMAND {0} verify environment {1})
)",
                     names.file, names.id);
}

using Files = std::vector<std::pair<std::string, std::string>>;  // path, text

// Writes files that must not exist, but for the lists of sources; says what they are and what to do
// next.
void WriteAll(const Files& files, const std::string& id, const std::string& what,
              const std::vector<std::string>& next, bool json) {
  for (const auto& [path, text] : files) {
    if (!path.ends_with("CMakeLists.txt") && FileExists(path))
      throw Error(ErrorCode::kConfig, path + " exists already");
  }
  std::vector<std::string> paths;
  for (const auto& [path, text] : files) {
    WriteFileAtomic(path, text);
    paths.push_back(path);
  }
  if (json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"id", id}, {"files", paths}}.dump());
    return;
  }
  fmt::print("{} {} until you change it:\n  {}\nnext:\n  {}\n", id, what, Join(paths, "\n  "),
             Join(next, "\n  "));
}

void MakeNewFolder(const std::string& folder) {
  if (DirectoryExists(folder)) throw Error(ErrorCode::kConfig, folder + " exists already");
  MakeDirectories(folder);
}

void NewMujocoTask(const Names& names, bool json) {
  const auto renamed = [&](const std::string& example) {
    return std::regex_replace(example, std::regex("\\bbalance\\b"), names.file);
  };
  MakeNewFolder(names.file);
  const std::string begin = names.file + "/" + names.file, train = names.file + "/train.yaml";
  WriteAll({{begin + ".xml", renamed(kTaskModel)},
            {begin + ".yaml", renamed(kTask)},
            {train, renamed(kTaskConfig)}},
           names.file, "keeps a pole upright on a cart",
           {"cd " + names.file, "weft verify environment " + names.file + ".yaml",
            "weft train train.yaml"},
           json);
}

}  // namespace

int NewEnvironment(const std::string& name, bool mujoco, bool json) {
  const Names names = NamesOf(name);
  if (mujoco) {
    NewMujocoTask(names, json);
    return 0;
  }
  if (Environments().Find(names.id) != nullptr)
    throw Error(ErrorCode::kConfig, "there is an environment " + names.id + " already");
  const std::string what = "walks to the lit end of a corridor";
  if (FileExists("environments/register_environment.h")) {
    const std::string sources = "environments/CMakeLists.txt";
    const std::string tests = "tests/environments/CMakeLists.txt";
    const std::string config = "configs/ppo/" + names.file + ".yaml";
    WriteAll({{"environments/" + names.file + ".cc", Renamed(kExampleSource, names)},
              {"tests/environments/" + names.file + "_test.cc", TestOf(names)},
              {config, Renamed(kExampleConfig, names)},
              {sources, WithLine(ReadFile(sources), "  " + names.file + ".cc")},
              {tests, WithLine(ReadFile(tests), "  " + names.file + "_test.cc")}},
             names.id, what,
             {"./weft train " + config, "./weft test -R " + names.type,
              "./weft verify environment " + names.id},
             json);
    return 0;
  }
  MakeNewFolder(names.file);
  WriteAll({{names.file + "/CMakeLists.txt", ProjectOf(names)},
            {names.file + "/" + names.file + ".cc", Renamed(kExampleSource, names)},
            {names.file + "/" + names.file + ".yaml", Renamed(kExampleConfig, names)}},
           names.id, what,
           {"cd " + names.file,
            "cmake -B build -DCMAKE_PREFIX_PATH=WHERE_WEFT_IS_INSTALLED && cmake --build build",
            "build/" + names.file + " train " + names.file + ".yaml", "ctest --test-dir build"},
           json);
  return 0;
}

}  // namespace weft
