#include "program/command_line.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "base/version.h"

namespace weft {

CommandLine::CommandLine(int64_t (*allocations)())
    : app_("weft: reinforcement learning as graphs of fragments, one native program") {
  app_.set_version_flag("--version", std::string("weft ") + kVersion + " (" + kGitHash + ")");
  app_.name("weft");
  app_.require_subcommand(1);
  app_.fallthrough();
  AddRuns();
  AddTools();
  AddVerification(allocations);
  AddLanguage();
  AddModelFiles();
}

CLI::App* CommandLine::Command(const char* name, const char* help, CLI::App* parent) {
  CLI::App* command = (parent == nullptr ? &app_ : parent)->add_subcommand(name, help);
  command->add_flag("--json", json_, "the last line is one JSON object");
  return command;
}

std::string CommandLine::CommandFault(const std::string& word) const {
  std::vector<std::string> names;
  for (const CLI::App* command : app_.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (word.starts_with('-') || std::ranges::find(names, word) != names.end()) return "";
  return "there is no command \"" + word + "\"" + DidYouMean(word, names) +
         "; weft --help lists them";
}

}  // namespace weft
