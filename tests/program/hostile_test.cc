// weft verify hostile on small damaged files of each kind, and what it says when one is not
// refused.
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/program/weft_process.h"

namespace weft {
namespace {

using Json = nlohmann::json;

std::string Data() {
  return std::filesystem::absolute(WEFT_TEST_DATA "/hostile").string();
}

TEST(VerifyHostile, EachKindOfDamageIsRefused) {
  const WeftProcess weft;
  const auto checked = weft.Run("verify hostile --json --reference '" + Data() + "'");
  const Json line = Json::parse(checked.LastLine());
  EXPECT_EQ(checked.status, 0) << checked.out << checked.error;
  EXPECT_EQ(line.at("checked"), 11);
  EXPECT_EQ(line.at("failed"), 0);
  EXPECT_EQ(line.at("formats").size(), 7u);
  EXPECT_EQ(line.at("skipped").size(), 1u);
  EXPECT_NE(line.at("skipped")[0].get<std::string>().find("npy: 1 files"), std::string::npos);
}

TEST(VerifyHostile, NamesTheFileThatDoesNotHold) {
  const WeftProcess weft;
  std::filesystem::copy(Data(), weft.folder() + "/hostile",
                        std::filesystem::copy_options::recursive);
  // A file without a fault, of which the manifest says that it has one.
  std::ofstream(weft.folder() + "/hostile/yaml/alias.yaml") << "steps: 3\n";
  const auto checked = weft.Run("verify hostile --reference hostile");
  EXPECT_EQ(checked.status, 1);
  EXPECT_NE(checked.out.find("FAIL yaml/alias.yaml: an alias of itself: accepted, expected reject"),
            std::string::npos)
      << checked.out;
  EXPECT_NE(weft.Run("verify hostile --reference nowhere").status, 0);
}

}  // namespace
}  // namespace weft
