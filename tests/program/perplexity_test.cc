// How well a model foresees a text, and what rounding activations changes.
#include <cmath>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/language/reference_files.h"
#include "tests/program/tiny_chat_model.h"
#include "tests/program/weft_process.h"

namespace weft {
namespace {

using Json = nlohmann::json;

TEST(Perplexity, SaysWhatRoundingRowsToEightBitsChanges) {
  const std::string folder = ReferencePath("language/gguf");
  if (folder.empty()) GTEST_SKIP() << "WEFT_REFERENCE is unset: no quantised models";
  const WeftProcess weft;
  weft.Write("text.txt", "How well it is foreseen, word by word, and how much worse.");
  for (const std::string name : {"llama_gqa_untied-q8_0", "llama_gqa_untied-q4_1"}) {
    const auto json = [&](const std::string& arguments) {
      const auto run =
          weft.Run("perplexity " + folder + "/" + name + ".gguf text.txt --json" + arguments);
      EXPECT_EQ(run.status, 0) << run.error;
      return Json::parse(run.LastLine());
    };
    const Json exact = json(""), rounded = json(" --precision int8");
    EXPECT_EQ(rounded.at("unrounded_perplexity"), exact.at("perplexity"));
    EXPECT_NEAR(exact.at("perplexity"), std::exp(exact.at("loss").get<double>()), 1e-9);
    const double mean = rounded.at("log_p_error").at("mean");
    EXPECT_GT(mean, 0) << name;
    EXPECT_LT(mean, 0.2) << name;
    EXPECT_LE(mean, rounded.at("log_p_error").at("largest"));
    EXPECT_LE(std::abs(rounded.at("loss").get<double>() - exact.at("loss").get<double>()),
              mean * (1 + 1e-9));
  }
}

TEST(Perplexity, RefusesToRoundWhereNoWeightIsQuantised) {
  const WeftProcess weft;
  WriteTinyChatModel(weft.folder() + "/base", 64);
  weft.Write("text.txt", "hello");
  const auto run = weft.Run("perplexity base text.txt --precision int8");
  EXPECT_EQ(run.status, 78) << run.error;
  EXPECT_NE(run.error.find("weft convert"), std::string::npos) << run.error;
  EXPECT_NE(weft.Run("perplexity base text.txt --precision int4").error.find("int8"),
            std::string::npos);
}

}  // namespace
}  // namespace weft
