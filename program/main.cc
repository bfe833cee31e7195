#include "program/main.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <new>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "program/command_line.h"
#include "program/commands.h"

namespace weft {
namespace {

constexpr int kUsage = 64;  // EX_USAGE of sysexits.h

int Fail(const std::string& message, int status) {
  std::fflush(stdout);
  LogError(message);
  return status;
}

}  // namespace

int Main(int argc, char** argv, int64_t (*allocations)()) {
  // --json and --help of train are wanted before the rest is valid.
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const bool help =
      std::ranges::any_of(words, [](const auto& word) { return word == "--help" || word == "-h"; });
  try {
    if (help && !words.empty() && words[0] == "train") {
      const auto config = std::ranges::find_if(
          words.begin() + 1, words.end(), [](const auto& word) { return word.ends_with(".yaml"); });
      fmt::print("{}", TrainHelp(config == words.end() ? "" : *config));
      return 0;
    }
    SetLogQuiet(std::ranges::find(words, "--json") != words.end());
    CommandLine line(allocations);
    if (words.empty()) {
      fmt::print(stderr, "{}", line.app().help());
      return kUsage;
    }
    if (const auto fault = line.CommandFault(words[0]); !fault.empty()) return Fail(fault, kUsage);
    try {
      line.app().parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return line.app().exit(error) == 0 ? 0 : kUsage;
    }
    return line.status();
  } catch (const Error& error) {
    return Fail(error.what(), ExitCode(error.code()));
  } catch (const std::bad_alloc&) {
    return Fail("out of memory: a smaller buffer or batch, or fewer rows, would fit", 70);
  } catch (const std::exception& error) {
    return Fail(std::string("internal error: ") + error.what(), 70);
  }
}

}  // namespace weft
