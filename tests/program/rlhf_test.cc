// Runs of RLHF on the real chat model, where it was fetched: one hash in every placement and after
// resume, and what a run leaves is a model that other commands open.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "language/model_name.h"
#include "tests/program/weft_process.h"

namespace weft {
namespace {

using Json = nlohmann::json;

constexpr char kConfig[] =
    "algorithm: grpo\nmodel: smollm2-135m-instruct\ntask: max4\ntotal_steps: 2\nprompts: 2\n"
    "group: 4\nheld_out_samples: 0\nthreads: 2\n";

class Rlhf : public testing::Test {
 protected:
  void SetUp() override {
    try {
      ResolveModel("smollm2-135m-instruct");
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    weft_.Write("config.yaml", kConfig);
  }
  std::string HashOf(const std::string& arguments) {
    const auto output = weft_.Run(arguments + " --json");
    EXPECT_EQ(output.status, 0) << output.error;
    if (output.status != 0) return "";
    return Json::parse(output.LastLine()).at("parameter_hash");
  }
  const WeftProcess weft_;
};

TEST_F(Rlhf, GrpoHasOneHashInEveryPlacementAndAfterResume) {
  const std::string whole = HashOf("train config.yaml run=whole");
  EXPECT_EQ(HashOf("train config.yaml run=threads placement=threads threads=1"), whole);
  EXPECT_EQ(HashOf("train config.yaml run=split placement=split_actors"), whole);
  HashOf("train config.yaml run=half total_steps=1");
  EXPECT_EQ(HashOf("resume half total_steps=2"), whole);
  const auto answer = weft_.Run("chat runs/whole/model --message Hello --max-new-tokens 3");
  EXPECT_EQ(answer.status, 0) << answer.error;
  EXPECT_FALSE(answer.out.empty());
}

TEST_F(Rlhf, AWrongConfigSaysWhatToDo) {
  weft_.Write("wrong.yaml", "algorithm: grpo\nmodel: no_such_model\n");
  const auto missing = weft_.Run("train wrong.yaml");
  EXPECT_EQ(missing.status, 78);
  EXPECT_NE(missing.error.find("no_such_model"), std::string::npos) << missing.error;
  const auto key = weft_.Run("train config.yaml grop=3");
  EXPECT_EQ(key.status, 78);
  EXPECT_NE(key.error.find("group"), std::string::npos) << key.error;
}

}  // namespace
}  // namespace weft
