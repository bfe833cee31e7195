// The command line: the parser, and the commands that are put into it by what they are about. Each
// command's options live as long as its callback, which leaves the exit status.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>

namespace weft {

class CommandLine {
 public:
  // allocations: see main.h.
  explicit CommandLine(int64_t (*allocations)());
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  CLI::App& app() { return app_; }
  int status() const { return status_; }

  // What is wrong with the first word, if it is meant as a command and none has that name.
  std::string CommandFault(const std::string& word) const;

 private:
  void AddRuns();        // train, resume, evaluate, play, export, worker, repro
  void AddTools();       // list, new, graph, plot, bench
  void AddLanguage();    // chat, generate, serve, perplexity
  void AddModelFiles();  // convert, tokenize, data
  void AddVerification(int64_t (*allocations)());  // verify

  // A command, of `parent` or of the program itself, that can end with a line of JSON.
  CLI::App* Command(const char* name, const char* help, CLI::App* parent = nullptr);
  // Runs run(options) when the command was given, with options.json where it has such a field.
  template <class Options>
  void Call(CLI::App* command, std::shared_ptr<Options> options, int (*run)(const Options&)) {
    command->callback([this, options = std::move(options), run] {
      if constexpr (requires { options->json; }) options->json = json_;
      status_ = run(*options);
    });
  }

  CLI::App app_;
  int status_ = 0;
  bool json_ = false;
};

}  // namespace weft
