// Runs the built weft as a user would, in a folder of its own.
#pragma once

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/wait.h>

#include "tests/base/temporary_folder.h"

namespace weft {

class WeftProcess {
 public:
  struct Output {
    int status = 0;
    std::string out, error;
    std::string LastLine() const {
      const size_t end = out.find_last_not_of('\n');
      if (end == std::string::npos) return "";
      const size_t begin = out.rfind('\n', end);
      return out.substr(begin == std::string::npos ? 0 : begin + 1,
                        end - (begin == std::string::npos ? -1 : begin));
    }
  };

  const std::string& folder() const { return folder_.path(); }

  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder() + "/" + name) << text;
    return name;
  }

  // before: put in front of the program, such as "timeout -s KILL 0.3".
  Output Run(const std::string& arguments, const std::string& before = "") const {
    const std::string command = "cd '" + folder() + "' && exec " + before + " " WEFT_BINARY " " +
                                arguments + " >out.txt 2>error.txt";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), Read("out.txt"),
            Read("error.txt")};
  }

  std::string Read(const std::string& name) const {
    std::ifstream file(folder() + "/" + name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace weft
