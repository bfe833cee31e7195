// Runs of RLHF on the real chat model, where it was fetched: one hash in every placement and after
// resume, and what a run leaves is a model that other commands open.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/memory.h"
#include "language/model_name.h"
#include "language/transformer_memory.h"
#include "tests/program/server_process.h"
#include "tests/program/weft_process.h"
#include "tests/rlhf/tiny_words.h"

namespace weft {
namespace {

using Json = nlohmann::json;

constexpr char kConfig[] =
    "algorithm: grpo\nmodel: smollm2-135m-instruct\ndata: {task: max4}\ntotal_steps: 2\nprompts: "
    "2\n"
    "group: 4\nevaluation_samples: 0\nthreads: 2\n";

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
  weft_.Write("wrong.yaml", "algorithm: grpo\nmodel: no_such_model\ndata: {task: max4}\n");
  const auto missing = weft_.Run("train wrong.yaml");
  EXPECT_EQ(missing.status, 78);
  EXPECT_NE(missing.error.find("no_such_model"), std::string::npos) << missing.error;
  const auto key = weft_.Run("train config.yaml grop=3");
  EXPECT_EQ(key.status, 78);
  EXPECT_NE(key.error.find("group"), std::string::npos) << key.error;
}

// Every method on a model of a few thousand weights: one process, or the learner in one and what it
// learns from in others.
class SplitMethods : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, SplitMethods,
                         testing::Values("grpo", "grpo max_lag=1",
                                         "grpo evaluate_every=1 evaluation_samples=2",
                                         "grpo lora.rank=2 beta=0.1",
                                         "ppo lora.rank=2 beta=0.1 max_lag=1", "dpo lora.rank=2",
                                         "kto lora.rank=2", "rloo", "reinforce_pp", "ppo",
                                         "ppo max_lag=1", "best_of_n", "online_dpo", "sft", "dpo",
                                         "kto", "orpo", "simpo", "reward_model", "pretrain"));

TEST_P(SplitMethods, HaveOneHashInBothPlacements) {
  const WeftProcess weft;
  WriteTinyModel(weft.folder() + "/tiny");
  const std::string method = GetParam().substr(0, GetParam().find(' '));
  const std::string more = GetParam().substr(method.size());
  const auto kind = [&](std::initializer_list<const char*> of) {
    return std::ranges::any_of(of, [&](const char* name) { return method == name; });
  };
  std::string words, rows;
  for (int i = 0; i < 60; ++i) words += "one two three four five six seven eight nine ten.\n";
  for (const char* n : {"one", "two", "three", "four", "five", "six"}) {
    const std::string prompt = R"({"prompt":")" + std::string(n) + " \"";
    if (method == "sft") rows += prompt + R"(,"completion":"two three"})";
    if (kind({"dpo", "orpo", "simpo", "reward_model"})) {
      rows += prompt + R"(,"chosen":"two!","rejected":"two."})";
    }
    if (method == "kto") rows += prompt + R"(,"completion":"two","label":true})";
    if (!rows.ends_with("}")) rows += prompt + "}";
    rows += "\n";
  }
  weft.Write("words.txt", words);
  weft.Write("rows.jsonl", rows);
  std::string config = "algorithm: " + method + "\ntotal_steps: 3\ngguf: none\nthreads: 1\n";
  if (method == "pretrain") {
    config +=
        "data: {files: words.txt, tokenizer: characters, window: 16}\nbatch: 4\n"
        "architecture: {family: llama, layers: 1, heads: 2, width: 32}\n";
  } else {
    config += "model: tiny\ndata: {files: rows.jsonl, evaluation_files: rows.jsonl}\n";
    config += kind({"sft", "dpo", "kto", "orpo", "simpo", "reward_model"})
                  ? "batch: 4\n"
                  : "prompts: 2\ngroup: 4\nmax_new_tokens: 6\nevaluation_samples: 0\n"
                    "rewards: [{name: letters, letters: aeiou}]\n";
  }
  weft.Write("config.yaml", config);
  const auto hash = [&](const std::string& placement) {
    const auto output = weft.Run("train config.yaml run=" + placement + " placement=" + placement +
                                 more + " --json");
    EXPECT_EQ(output.status, 0) << output.error;
    if (output.status != 0) return std::string();
    return Json::parse(output.LastLine()).at("parameter_hash").get<std::string>();
  };
  EXPECT_EQ(hash("split_actors"), hash("serial"));
}

// What runs on a model of a few thousand weights leave.
class TinyRuns : public testing::Test {
 protected:
  void SetUp() override {
    WriteTinyModel(weft_.folder() + "/tiny");
    std::string rows;
    for (const char* n : {"one", "two", "three", "four", "five", "six"}) {
      rows += R"({"prompt":")" + std::string(n) + R"( ","completion":"two three"})" + "\n";
    }
    weft_.Write("rows.jsonl", rows);
    weft_.Write("grpo.yaml",
                "algorithm: grpo\nmodel: tiny\ntotal_steps: 3\ngguf: none\nthreads: 1\n"
                "data: {files: rows.jsonl, evaluation_files: rows.jsonl}\nprompts: 2\ngroup: 4\n"
                "max_new_tokens: 6\nevaluation_samples: 2\nkl_stop: 1000\nwarmup_steps: 0\n"
                "learning_rate: 1e-3\nrewards: [{name: letters, letters: aeiou}]\n");
    weft_.Write("sft.yaml",
                "algorithm: sft\nmodel: tiny\ntotal_steps: 3\ngguf: none\nthreads: 1\nbatch: 4\n"
                "data: {files: rows.jsonl, evaluation_files: rows.jsonl}\nwarmup_steps: 0\n");
  }
  Json Train(const std::string& arguments) {
    const auto output = weft_.Run("train " + arguments + " --json");
    EXPECT_EQ(output.status, 0) << output.error;
    return output.status == 0 ? Json::parse(output.LastLine()) : Json();
  }
  std::string Weights(const std::string& run) const {
    return weft_.Read("runs/" + run + "/model/model.safetensors");
  }
  const WeftProcess weft_;
};

TEST_F(TinyRuns, ShowTheirRewardFirstAndHowFastTheirPhasesAre) {
  const auto output = weft_.Run("train grpo.yaml run=shown");
  ASSERT_EQ(output.status, 0) << output.error;
  size_t at = output.error.find("3/3");
  for (const char* name :
       {"  reward ", "  kl ", "  answer_tokens ", "  policy_loss ", "  generate_tokens_per_second ",
        "  learn_tokens_per_second ", "  reference_tokens_per_second "}) {
    const size_t next = output.error.find(name, at);
    ASSERT_NE(next, std::string::npos) << name << " in " << output.error;
    at = next;
  }
  const std::string metrics = weft_.Read("runs/shown/metrics.jsonl");
  const Json last = Json::parse(metrics.substr(metrics.rfind('\n', metrics.size() - 2) + 1));
  for (const std::string phase : {"generate", "reference", "learn"}) {
    // Eight answers of at most six tokens.
    const double tokens = last.at(phase + "_tokens_per_second").get<double>() *
                          last.at(phase + "_seconds").get<double>();
    EXPECT_NEAR(tokens, 8 * last.at("answer_tokens").get<double>(), 1e-6) << phase;
  }
}

TEST_F(TinyRuns, CompareThePerplexityOfTheStartAndTheTrainedModel) {
  const Json moved =
      Train("grpo.yaml run=moved drift_files=rows.jsonl learning_rate=1e-2").at("evaluation");
  EXPECT_GT(moved.at("own_perplexity_before"), 1);
  EXPECT_NE(moved.at("own_perplexity"), moved.at("own_perplexity_before"));
  EXPECT_NE(moved.at("text_perplexity"), moved.at("text_perplexity_before"));
  const Json still =
      Train("grpo.yaml run=still drift_files=rows.jsonl learning_rate=1e-30").at("evaluation");
  EXPECT_EQ(still.at("own_perplexity"), still.at("own_perplexity_before"));
  EXPECT_EQ(still.at("text_perplexity"), still.at("text_perplexity_before"));
  EXPECT_EQ(still.at("kl"), 0);
  EXPECT_EQ(still.at("own_perplexity_before"), moved.at("own_perplexity_before"));
  // The same rows as sft judges them.
  const Json sft = Train("sft.yaml run=sft").at("evaluation");
  EXPECT_NEAR(std::log(still.at("text_perplexity").get<double>()),
              sft.at("held_out_loss_before").get<double>(), 1e-6);
}

TEST_F(TinyRuns, DrawTheRewardOverTheDivergence) {
  if (std::system("command -v gnuplot >/dev/null 2>&1") != 0) GTEST_SKIP() << "no gnuplot";
  Train("grpo.yaml run=drawn");
  EXPECT_NE(weft_.Read("runs/drawn/kl_reward.svg").find(">kl<"), std::string::npos);
  EXPECT_EQ(weft_.Run("plot drawn --metric reward --over kl -o here.svg").status, 0);
  EXPECT_EQ(weft_.Read("here.svg").substr(0, 5), "<?xml");
  const auto wrong = weft_.Run("plot drawn --metric reward --over kll");
  EXPECT_EQ(wrong.status, 78);
  EXPECT_NE(wrong.error.find("kll"), std::string::npos) << wrong.error;
}

TEST_F(TinyRuns, LeaveTheMeanOfTheWeightsWhereItIsKept) {
  const Json plain = Train("grpo.yaml run=plain"), mean = Train("grpo.yaml run=mean ema.decay=0.9"),
             all = Train("grpo.yaml run=all ema.decay=1e-12");
  EXPECT_EQ(plain.at("parameter_hash"), mean.at("parameter_hash"));
  EXPECT_FALSE(Weights("plain").empty());
  EXPECT_NE(Weights("plain"), Weights("mean"));
  EXPECT_EQ(Weights("plain"), Weights("all")) << "an update leaves nothing of the mean before it";
}

TEST_F(TinyRuns, TheBestRewardModelIsNormalisedToo) {
  std::string pairs;
  for (const char* n : {"one", "two", "three", "four"}) {
    pairs += R"({"prompt":")" + std::string(n) + R"( ","chosen":"two!","rejected":"two."})" + "\n";
  }
  weft_.Write("pairs.jsonl", pairs);
  Train(
      "sft.yaml algorithm=reward_model run=reward evaluate_every=1 learning_rate=1e-3 "
      "data.files=pairs.jsonl data.evaluation_files=pairs.jsonl");
  const Json last = Json::parse(weft_.Read("runs/reward/model/score_normalisation.json"));
  const Json best = Json::parse(weft_.Read("runs/reward/best/score_normalisation.json"));
  EXPECT_EQ(best, last) << "the loss falls to the end, so the last is the best";
}

// Steps of a pipeline on a model of a few thousand weights, then its reward model as a service.
TEST(Pipeline, MakesEachStepOfWhatAnEarlierOneLeft) {
  const WeftProcess weft;
  std::string words, rows, pairs;
  for (int i = 0; i < 60; ++i) words += "one two three four five six seven eight nine ten.\n";
  for (const char* n : {"one", "two", "three", "four"}) {
    rows += R"({"prompt":")" + std::string(n) + R"( ","completion":"two three"})" + "\n";
    pairs += R"({"prompt":")" + std::string(n) + R"( ","chosen":"two!","rejected":"two."})" + "\n";
  }
  weft.Write("words.txt", words);
  weft.Write("rows.jsonl", rows);
  weft.Write("pairs.jsonl", pairs);
  const std::string common = "total_steps: 3\nbatch: 4\ngguf: none\nthreads: 1\n";
  weft.Write("pretrain.yaml",
             "algorithm: pretrain\ndata: {files: words.txt, tokenizer: characters, window: 16}\n"
             "architecture: {family: llama, layers: 1, heads: 2, width: 32}\n" +
                 common);
  weft.Write("sft.yaml", "algorithm: sft\nmodel: x\ndata: {files: rows.jsonl}\n" + common);
  weft.Write("reward.yaml",
             "algorithm: reward_model\nmodel: x\ndata: {files: pairs.jsonl}\n" + common);
  weft.Write("ppo.yaml",
             "algorithm: ppo\nmodel: x\ndata: {files: rows.jsonl}\ntotal_steps: 2\nprompts: 2\n"
             "max_new_tokens: 5\nrewards: [{name: model, path: x}]\ngguf: none\nthreads: 1\n");
  weft.Write("pipeline.yaml",
             "algorithm: pipeline\nrun: four\nsteps:\n"
             "  - {name: pretrain, config: pretrain.yaml}\n"
             "  - {name: sft, config: sft.yaml, set: [\"model={pretrain}\"]}\n"
             "  - {name: reward, config: reward.yaml, set: [\"model={sft}\"]}\n"
             "  - {name: ppo, config: ppo.yaml, set: [\"model={sft}\", "
             "\"rewards.model.path={reward}\"]}\n");
  const auto early = weft.Run("graph pipeline.yaml");
  EXPECT_EQ(early.status, 0) << early.error;
  EXPECT_NE(early.out.find("data.batch -> learner.batch"), std::string::npos) << early.out;
  EXPECT_NE(early.error.find("sft has no graph yet"), std::string::npos) << early.error;
  const auto output = weft.Run("train pipeline.yaml --json");
  ASSERT_EQ(output.status, 0) << output.error;
  const Json results = Json::parse(output.LastLine());
  EXPECT_EQ(results.size(), 4u);
  EXPECT_TRUE(results.at("ppo").contains("reward"));
  EXPECT_TRUE(FileExists(weft.folder() + "/runs/four-ppo/model/config.json"));
  const auto again = weft.Run("train pipeline.yaml --json");
  EXPECT_EQ(Json::parse(again.LastLine()), results);
  const auto graphs = weft.Run("graph pipeline.yaml --json");
  EXPECT_EQ(graphs.status, 0) << graphs.error;
  const Json steps = Json::parse(graphs.LastLine());
  EXPECT_EQ(steps.size(), 4u);
  EXPECT_NE(steps.at("ppo").at("text").get<std::string>().find("generator.samples"),
            std::string::npos);

  weft.Write("wrong.yaml",
             "algorithm: pipeline\nrun: w\nsteps:\n"
             "  - {name: sft, config: sft.yaml, set: [\"model={pretrian}\"]}\n");
  const auto wrong = weft.Run("train wrong.yaml");
  EXPECT_EQ(wrong.status, 78);
  EXPECT_NE(wrong.error.find("{pretrian} is no earlier step"), std::string::npos) << wrong.error;

  const ServerProcess server(
      {"serve-reward", weft.folder() + "/runs/four-reward/model", "--threads", "1"});
  const Json scores =
      Json::parse(server.Post("/get_reward", R"({"query":["one two!","one two."]})").body);
  ASSERT_EQ(scores.at("rewards").size(), 2u);
  EXPECT_NE(scores.at("rewards")[0], scores.at("rewards")[1]);
  EXPECT_EQ(server.Post("/get_reward", R"({"query":["one",2]})").status, 400);
  EXPECT_EQ(server.Post("/get_reward", R"({"query":[""]})").status, 400);
  EXPECT_EQ(server.Post("/get_reward", "nonsense").status, 400);
  EXPECT_EQ(server.Post("/elsewhere", "{}").status, 404);
}

// The bar of docs/language_models.md.
TEST(Memory, GenerationTakesWeightsKeysAndAHundredMegabytes) {
  std::string path;
  try {
    path = ResolveModel("smollm2-135m-instruct");
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const auto file = ModelFile::Open(path);
  const WeftProcess weft;
  int64_t before = 0;
  for (const char* precision : {"auto", "bf16", "f32"}) {  // each takes more than the last
    const auto output = weft.Run(
        "generate smollm2-135m-instruct --prompt \"Once upon a time\" "
        "--samples 4 --max-new-tokens 4 --threads 2 --precision " +
        std::string(precision));
    ASSERT_EQ(output.status, 0) << output.error;
    const LoadOptions options{
        .precision = precision == std::string("f32") ? Precision::kFloat32 : Precision::kBFloat16,
        .keep_quantised = precision == std::string("auto")};
    const int64_t keys = 4 * TransformerMemory(file->config(), options.precision).Cache(9);
    EXPECT_LE(PeakMemory(), LoadedBytes(*file, options) + keys + 100'000'000) << precision;
    EXPECT_GT(PeakMemory(), before) << precision << " is what was measured";
    before = PeakMemory();
  }
}

// 29 million weights, of which a run's other memory is a small part.
TEST(Memory, ARunTakesWhatWasPlanned) {
  const WeftProcess weft;
  std::string words;
  for (int i = 0; i < 60; ++i) words += "one two three four five six seven eight nine ten.\n";
  weft.Write("words.txt", words);
  weft.Write("config.yaml",
             "algorithm: pretrain\ndata: {files: words.txt, tokenizer: characters, window: 64}\n"
             "architecture: {family: llama, layers: 9, heads: 8, width: 512}\n"
             "total_steps: 2\nbatch: 4\ngguf: none\nthreads: 2\nrun: memory\n");
  const auto output = weft.Run("train config.yaml");
  ASSERT_EQ(output.status, 0) << output.error;
  const std::string said = output.out + output.error;
  EXPECT_NE(said.find("iB at most, while learning: "), std::string::npos) << said;
  EXPECT_NE(said.find("peak memory"), std::string::npos) << said;
  const Json manifest = Json::parse(weft.Read("runs/memory/manifest.json"));
  const auto peak = manifest.at("result").at("peak_bytes").get<double>();
  const auto planned = manifest.at("result").at("planned_bytes").get<double>();
  EXPECT_NEAR(peak / planned, 1, 0.1) << peak << " of " << planned;
}

TEST(LanguageMethods, AreListedAndExplained) {
  const WeftProcess weft;
  EXPECT_NE(weft.Run("list algorithms").out.find("reinforce_pp"), std::string::npos);
  weft.Write("config.yaml", "algorithm: ppo\nmodel: m\ndata: {task: max4}\n");
  const auto help = weft.Run("train config.yaml --help");
  EXPECT_EQ(help.status, 0) << help.error;
  EXPECT_NE(help.out.find("gae_lambda"), std::string::npos);
  EXPECT_NE(help.out.find("kl_target"), std::string::npos);
}

}  // namespace
}  // namespace weft
