// Learning from data on disk as a user does it, on a chat model of a few thousand weights.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/program/weft_process.h"
#include "tests/rlhf/tiny_words.h"

namespace weft {
namespace {

using Json = nlohmann::json;

class Offline : public testing::Test {
 protected:
  void SetUp() override {
    WriteTinyModel(weft_.folder() + "/tiny");
    std::string rows;
    for (const char* word : {"one", "two", "three", "four", "five", "six"}) {
      rows += R"({"messages":[{"role":"user","content":"say )" + std::string(word) +
              R"("},{"role":"assistant","content":")" + word + "\"}]}\n";
    }
    weft_.Write("chats.jsonl", rows);
    weft_.Write("sft.yaml",
                "algorithm: sft\nmodel: tiny\ndata: {files: chats.jsonl, evaluation_share: 0.2}\n"
                "total_steps: 12\nbatch: 2\nevaluate_every: 4\nlearning_rate: 3e-3\nthreads: 1\n"
                "checkpoint: {every: 3, min_seconds: 0}\n");
  }
  Json Result(const std::string& arguments) {
    const auto output = weft_.Run(arguments + " --json");
    EXPECT_EQ(output.status, 0) << output.error;
    return output.status == 0 ? Json::parse(output.LastLine()) : Json();
  }
  const WeftProcess weft_;
};

TEST_F(Offline, InspectShowsWhatIsLearnt) {
  const auto shown = weft_.Run("data inspect chats.jsonl --model tiny --rows 1");
  ASSERT_EQ(shown.status, 0) << shown.error;
  EXPECT_NE(shown.out.find("<|im_start|>assistant\n[[one<|im_end|>]]"), std::string::npos)
      << shown.out;
  EXPECT_EQ(shown.out.find("say two"), std::string::npos);
  const Json counts = Result("data inspect chats.jsonl --model tiny");
  EXPECT_EQ(counts.at("rows"), 6);
  EXPECT_EQ(counts.at("bad_lines"), 0);
}

TEST_F(Offline, ARunLeavesTheBestModelAndTheLastAndResumesInTheMiddleOfAnEpoch) {
  const Json whole = Result("train sft.yaml run=whole");
  EXPECT_LT(whole.at("evaluation").at("held_out_loss"),
            whole.at("evaluation").at("held_out_loss_before"));
  EXPECT_FALSE(weft_.Read("runs/whole/best/config.json").empty());
  const auto answer = weft_.Run("chat runs/whole/model --message Hello --max-new-tokens 3");
  EXPECT_EQ(answer.status, 0) << answer.error;
  Result("train sft.yaml run=half total_steps=7 schedule=constant");
  const Json resumed = Result("resume half total_steps=12");
  EXPECT_EQ(resumed.at("parameter_hash"),
            Result("train sft.yaml run=constant schedule=constant").at("parameter_hash"));
  EXPECT_EQ(Result("train sft.yaml run=split placement=split_actors").at("parameter_hash"),
            whole.at("parameter_hash"));
}

TEST_F(Offline, BadDataNamesFileAndLine) {
  weft_.Write("bad.jsonl", weft_.Read("chats.jsonl") + "{\"messages\": []}\n");
  const auto bad = weft_.Run("train sft.yaml data.files=bad.jsonl");
  EXPECT_NE(bad.status, 0);
  EXPECT_NE(bad.error.find("bad.jsonl:7: messages has no messages"), std::string::npos)
      << bad.error;
  weft_.Write("long.jsonl", R"({"messages":[{"role":"user","content":")" + std::string(200, 'x') +
                                R"("},{"role":"assistant","content":"y"}]})" + "\n");
  const auto skipped = weft_.Run(
      "train sft.yaml data.files=[bad.jsonl,long.jsonl] data.bad_lines=skip data.max_tokens=100 "
      "data.evaluation_share=0 data.evaluation_files=chats.jsonl");
  EXPECT_EQ(skipped.status, 0) << skipped.error;
  const auto times = [&](const char* words) {
    const auto after = skipped.error.find(words) + 1;
    return after == 0 ? 0 : skipped.error.find(words, after) == std::string::npos ? 1 : 2;
  };
  EXPECT_EQ(times("lines are left out"), 1) << skipped.error;
  EXPECT_EQ(times("skipped: long.jsonl:1"), 1) << skipped.error;
  const auto wrong = weft_.Run("train sft.yaml algorithm=dpo");
  EXPECT_NE(wrong.status, 0);
  EXPECT_NE(wrong.error.find("this method learns from pairs"), std::string::npos) << wrong.error;
}

}  // namespace
}  // namespace weft
