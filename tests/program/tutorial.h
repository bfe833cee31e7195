// Runs a page of docs/ as its reader would: its code blocks, in order, in a fresh folder that has
// the built weft in PATH and looks like a checkout.
//
//   ```xml, yaml, python, cpp   that begins with the comment of a file's name: is written there
//   ```sh                       is run; must succeed
//   ```text                     each of its lines must stand in what the last ```sh printed, in
//   order
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/base/temporary_folder.h"

namespace weft {

class Tutorial {
 public:
  // page: a file of docs/; tests run in the source folder.
  explicit Tutorial(const std::string& page) : page_("docs/" + page) {
    namespace fs = std::filesystem;
    fs::create_directories(folder_.Path("bin"));
    fs::create_directories(folder_.Path("home"));
    fs::create_directories(folder_.Path("build"));
    fs::create_symlink(WEFT_BINARY, folder_.Path("bin/weft"));
    fs::create_symlink(WEFT_BINARY, folder_.Path("weft"));
    fs::create_symlink(WEFT_BUILD, folder_.Path("build/release"));
    fs::create_symlink(fs::absolute("configs"), folder_.Path("configs"));
    fs::copy("docs", folder_.Path("docs"), fs::copy_options::recursive);
    std::ifstream file(page_);
    EXPECT_TRUE(file) << page_;
    bool inside = false;
    int number = 0;
    for (std::string line; std::getline(file, line);) {
      ++number;
      if (line.starts_with("```")) {
        inside = !inside;
        if (inside) blocks_.push_back({line.substr(3), number, {}});
      } else if (inside) {
        blocks_.back().lines.push_back(line);
      }
    }
  }

  void Run() {
    int ran = 0;
    for (const Block& block : blocks_) {
      const std::string place = page_ + ":" + std::to_string(block.line);
      if (block.language == "sh") {
        Execute(block, place);
        ++ran;
      } else if (block.language == "text") {
        Compare(block, place);
      } else {
        Write(block);
      }
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_GT(ran, 0) << page_ << " has no block that is run";
  }

  const std::string& folder() const { return folder_.path(); }

 private:
  struct Block {
    std::string language;
    int line;
    std::vector<std::string> lines;
    std::string Text() const {
      std::string text;
      for (const std::string& each : lines) text += each + "\n";
      return text;
    }
  };

  void Write(const Block& block) const {
    static const std::regex kName("(?:<!--|#|//) ([\\w/-]+\\.(?:xml|yaml|py|cc))(?: -->)?");
    std::smatch match;
    if (block.lines.empty() || !std::regex_match(block.lines[0], match, kName)) return;
    std::filesystem::create_directories(
        std::filesystem::path(folder_.Path(match[1])).parent_path());
    std::ofstream(folder_.Path(match[1])) << block.Text();
  }

  void Execute(const Block& block, const std::string& place) {
    std::ofstream(folder_.Path("block.sh")) << block.Text();
    const char* cache = std::getenv("XDG_CACHE_HOME");
    const std::string home = std::getenv("HOME") != nullptr ? std::getenv("HOME") : "";
    const std::string command =
        "cd '" + folder() + "' && PATH=\"$PWD/bin:$PATH\" XDG_CACHE_HOME='" +
        (cache != nullptr ? cache : home + "/.cache") +
        "' HOME=\"$PWD/home\" bash -e -o pipefail block.sh >output.txt 2>&1";
    const int status = std::system(command.c_str());
    std::ifstream file(folder_.Path("output.txt"));
    std::stringstream text;
    text << file.rdbuf();
    output_ = text.str();
    EXPECT_EQ(status, 0) << place << ":\n" << block.Text() << "printed:\n" << output_;
  }

  void Compare(const Block& block, const std::string& place) const {
    size_t at = 0;
    for (const std::string& line : block.lines) {
      const size_t found = output_.find(line, at);
      EXPECT_NE(found, std::string::npos)
          << place << ": \"" << line << "\" is not (or not there) in:\n"
          << output_;
      if (found == std::string::npos) return;
      at = found + line.size();
    }
  }

  const std::string page_;
  TemporaryFolder folder_;
  std::vector<Block> blocks_;
  std::string output_;
};

}  // namespace weft
