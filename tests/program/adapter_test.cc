// LoRA adapters on the command line: beside the weights, or merged into them, they say the same.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "language/lora_files.h"
#include "language/model_files.h"
#include "tests/program/tiny_chat_model.h"
#include "tests/program/weft_process.h"

namespace weft {
namespace {

using Json = nlohmann::json;

// A tiny model and an adapter that changes all it says.
class Adapters : public testing::Test {
 protected:
  void SetUp() override {
    WriteTinyChatModel(weft_.folder() + "/base", 256);
    WriteAdapter("adapter", 3, 32);
  }
  void WriteAdapter(const std::string& name, int64_t rank, int64_t hidden) const {
    LoraAdapter adapter;
    adapter.rank = rank;
    adapter.alpha = static_cast<double>(2 * rank);
    Rng rng(Rng::State{9, 0, 0});
    const auto numbers = [&](int64_t count) {
      std::vector<float> values(static_cast<size_t>(count));
      for (float& value : values) value = 0.3f * static_cast<float>(rng.Normal());
      return values;
    };
    adapter.matrices.push_back({"model.layers.0.self_attn.q_proj.weight", hidden, hidden,
                                numbers(rank * hidden), numbers(hidden * rank)});
    adapter.matrices.push_back({"model.layers.1.mlp.up_proj.weight", hidden, 2 * hidden,
                                numbers(rank * hidden), numbers(2 * hidden * rank)});
    ModelConfig config = ModelFile::Open(weft_.folder() + "/base")->config();
    config.hidden = hidden;
    config.head_dimension = hidden / config.heads;
    config.intermediate = 2 * hidden;
    WriteLoraAdapter(weft_.folder() + "/" + name, adapter, config);
  }
  // The ids of a greedy answer.
  Json Ids(const std::string& arguments) const {
    const auto run = weft_.Run("generate " + arguments +
                               " --prompt hello --temperature 0 --precision f32 --max-new-tokens "
                               "30");
    EXPECT_EQ(run.status, 0) << run.error;
    return run.status == 0 ? Json::parse(run.LastLine()).at("ids") : Json();
  }

  WeftProcess weft_;
};

TEST_F(Adapters, SayTheSameBesideTheWeightsAndMergedIntoThem) {
  const auto converted = weft_.Run("convert base merged --adapter adapter --json");
  ASSERT_EQ(converted.status, 0) << converted.error;
  const Json attached = Ids("base --adapter adapter");
  EXPECT_EQ(attached, Ids("merged"));
  EXPECT_NE(attached, Ids("base"));
  weft_.Write("text.txt", "How well it is foreseen, letter by letter.");
  const auto loss = [&](const std::string& arguments) {
    const auto run = weft_.Run("perplexity " + arguments + " text.txt --precision f32 --json");
    EXPECT_EQ(run.status, 0) << run.error;
    return Json::parse(run.LastLine()).at("loss").get<double>();
  };
  EXPECT_NEAR(loss("base --adapter adapter"), loss("merged"), 1e-4);
  EXPECT_GT(std::abs(loss("base") - loss("merged")), 1e-2);
  const std::string chat = " --message hello --temperature 0 --precision f32 --max-new-tokens 30";
  EXPECT_EQ(weft_.Run("chat base --adapter adapter" + chat).out,
            weft_.Run("chat merged" + chat).out);
}

TEST_F(Adapters, BlocksAreMadeOfTheSum) {
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {  // GGUF has no such
    std::filesystem::remove(weft_.folder() + "/base/" + name);
  }
  ASSERT_EQ(weft_.Run("convert base at_once.gguf --adapter adapter --type q8_0").status, 0);
  std::filesystem::create_directory(weft_.folder() + "/sum");
  ASSERT_EQ(weft_.Run("convert base sum/base --adapter adapter").status, 0);
  ASSERT_EQ(weft_.Run("convert sum/base in_two.gguf --type q8_0").status, 0);
  EXPECT_EQ(weft_.Read("at_once.gguf"), weft_.Read("in_two.gguf"));
}

TEST_F(Adapters, ThatDoNotFitAreRefusedByWhatIsWrong) {
  const auto says = [&](const std::string& adapter) {
    const auto run = weft_.Run("generate base --prompt hello --adapter " + adapter);
    EXPECT_NE(run.status, 0);
    EXPECT_EQ(run.out, "");
    return run.error;
  };
  WriteAdapter("wide", 3, 64);
  EXPECT_NE(says("wide").find("self_attn.q_proj does not have the shapes [3, 32] and [32, 3]"),
            std::string::npos);
  EXPECT_NE(says("nowhere").find("nowhere/adapter_config.json"), std::string::npos);
  const std::string file = "adapter/adapter_config.json";
  std::string config = weft_.Read(file);
  config.replace(config.find("\"r\": 3"), 6, "\"r\": 5");
  weft_.Write(file, config);
  EXPECT_NE(says("adapter").find("does not have the shapes [5, 32] and [32, 5]"),
            std::string::npos);
  EXPECT_NE(weft_.Run("convert base merged --adapter adapter").status, 0);
  EXPECT_FALSE(DirectoryExists(weft_.folder() + "/merged"));
}

}  // namespace
}  // namespace weft
