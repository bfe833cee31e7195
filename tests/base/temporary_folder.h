// A folder of a test's own, removed when the test ends.
#pragma once

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

#include "base/file.h"

namespace weft {

class TemporaryFolder {
 public:
  TemporaryFolder() : path_(::testing::TempDir() + "weft_XXXXXX") {
    EXPECT_NE(::mkdtemp(path_.data()), nullptr);
  }
  ~TemporaryFolder() { RemoveTree(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string Path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace weft
