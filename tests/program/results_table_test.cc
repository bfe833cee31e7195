#include "program/results_table.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/file.h"
#include "tests/base/temporary_folder.h"

namespace weft {
namespace {

const std::vector<std::string> kHeader = {"run", "return"};

TEST(ResultsTable, MakesReplacesAndAppendsRowsAndLeavesTheRestAlone) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/results.md";
  WriteFileAtomic(path, "# Results\n\n<!-- table -->\n<!-- /table -->\n\nAfter.\n");
  UpdateTable(path, "table", kHeader, {{"a", "1"}, {"b", "2"}});
  UpdateTable(path, "table", kHeader, {{"b", "3"}, {"c", "4"}});
  EXPECT_EQ(ReadFile(path),
            "# Results\n\n<!-- table -->\n| run | return |\n| --- | --- |\n| a | 1 |\n| b | 3 |\n| "
            "c | 4 |\n"
            "<!-- /table -->\n\nAfter.\n");
}

TEST(ResultsTable, ARowIsKnownByAllColumnsOfItsKey) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/results.md";
  UpdateTable(path, "table", kHeader, {{"a", "1"}, {"a", "2"}}, {0, 1});
  UpdateTable(path, "table", kHeader, {{"a", "2"}, {"a", "3"}}, {0, 1});
  const std::string text = ReadFile(path);
  for (const char* row : {"| a | 1 |", "| a | 2 |", "| a | 3 |"}) {
    EXPECT_NE(text.find(row), std::string::npos) << row;
    EXPECT_EQ(text.find(row), text.rfind(row)) << row;
  }
}

TEST(ResultsTable, AMissingFileOrMarkIsMade) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/new.md";
  UpdateTable(path, "x", kHeader, {{"a", "1"}});
  UpdateTable(path, "y", kHeader, {{"b", "2"}});
  const std::string text = ReadFile(path);
  EXPECT_NE(text.find("<!-- x -->\n| run"), std::string::npos);
  EXPECT_NE(text.find("| b | 2 |\n<!-- /y -->"), std::string::npos);
}

TEST(ResultsTable, AnOpenMarkIsAnError) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/open.md";
  WriteFileAtomic(path, "<!-- x -->\n| a |\n");
  EXPECT_THROW(UpdateTable(path, "x", kHeader, {{"a", "1"}}), Error);
}

TEST(ResultsTable, ColumnsAreAligned) {
  EXPECT_EQ(FormatTable(kHeader, {{"long name", "1"}}), "run        return\nlong name  1\n");
}

}  // namespace
}  // namespace weft
