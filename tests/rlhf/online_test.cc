// Methods that learn from a model's own answers, on a model of a few thousand weights: what their
// steps must not depend on, and what must hold at the first update.
#include "rlhf/online.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "base/check.h"
#include "language/generator.h"
#include "rlhf/prompts.h"
#include "tests/base/temporary_folder.h"
#include "tests/rlhf/method_run.h"
#include "tests/rlhf/tiny_words.h"

namespace weft {
namespace {

class OnlineBase : public testing::Test {
 protected:
  void SetUp() override {
    WriteTinyModel(folder_.Path("model"));
    WritePrompts(folder_.Path("prompts.jsonl"));
  }
  std::unique_ptr<LanguageMethod> Make(const std::string& name, const std::string& more) const {
    return ParseMethod(name,
                       "model: " + folder_.Path("model") +
                           "\ndata: {files: " + folder_.Path("prompts.jsonl") +
                           ", evaluation_prompts: 0}\nprecision: f32\nthreads: 1\n"
                           "warmup_steps: 0\nprompts: 4\ngroup: 4\nmax_new_tokens: 6\n"
                           "rewards: [{name: letters, letters: aeiou}]\nlearning_rate: 1e-2\n",
                       more);
  }
  static uint64_t HashOf(const MethodRun& run) { return Hash(run.policy()); }

  const TemporaryFolder folder_;
};

class Online : public OnlineBase, public testing::WithParamInterface<std::string> {};
INSTANTIATE_TEST_SUITE_P(Methods, Online,
                         testing::Values("grpo", "rloo", "reinforce_pp", "ppo", "best_of_n",
                                         "online_dpo"));

TEST_P(Online, HasOneHashInEveryPlacementAndAfterResume) {
  const std::string settings = "epochs: 2\nminibatches: 2\n";
  const auto whole = Make(GetParam(), settings + "total_steps: 4\n");
  const uint64_t hash = HashOf(RunMethod(*whole));
  EXPECT_EQ(HashOf(RunMethod(*whole, "threads")), hash);
  const MethodRun half = RunMethod(*Make(GetParam(), settings + "total_steps: 2\n"));
  EXPECT_NE(HashOf(half), hash);
  EXPECT_EQ(HashOf(RunMethod(*whole, "serial", &half.cut)), hash);
}

TEST_P(Online, AStepDoesNotDependOnMicroBatches) {
  const std::string settings = "total_steps: 2\nlearning_rate: 1e-3\n";
  const MethodRun together =
      RunMethod(*Make(GetParam(), settings + "micro_batch_tokens: 100000\n"));
  const MethodRun apart = RunMethod(*Make(GetParam(), settings + "micro_batch_tokens: 1\n"));
  const TensorMap a = together.policy(), b = apart.policy();
  double worst = 0;
  for (const auto& [name, tensor] : a) {
    const auto x = tensor.data<float>(), y = b.At(name.text()).data<float>();
    for (size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::fabs(double{x[i]} - y[i]));
  }
  EXPECT_LT(worst, 2e-5);
}

TEST_P(Online, TheFirstRatioIsOneAndTheFirstDivergenceIsZero) {
  for (const char* precision : {"f32", "bf16", "bf16\nlora: {rank: 2}"}) {
    const MethodRun run = RunMethod(*Make(
        GetParam(), std::string("total_steps: 2\nkl_stop: 1000\nprecision: ") + precision + "\n"));
    EXPECT_EQ(run.metrics.at("max_log_ratio")[0], 0) << precision;
    EXPECT_EQ(run.metrics.at("max_log_ratio")[1], 0) << precision;
    EXPECT_EQ(run.metrics.at("kl")[0], 0) << precision;
    EXPECT_NE(run.metrics.at("kl")[1], 0) << precision;
  }
}

// With a lag of 1 the first two steps' answers are the start model's, whatever the placement, and
// the ratio of every later update is to the version that spoke.
TEST_P(Online, WithALagTheParametersBeforeTheNewestSpeak) {
  const std::string settings = "kl_stop: 1000\nmax_lag: 1\n";
  const auto whole = Make(GetParam(), settings + "total_steps: 4\n");
  const MethodRun run = RunMethod(*whole);
  EXPECT_THAT(run.metrics.at("lag"), testing::ElementsAre(0, 1, 1, 1));
  const auto& kl = run.metrics.at("kl");
  EXPECT_EQ(kl[0], 0);
  EXPECT_EQ(kl[1], 0);
  EXPECT_NE(kl[2], 0);
  if (GetParam() != "best_of_n" && GetParam() != "online_dpo") {  // which have no ratio
    EXPECT_EQ(run.metrics.at("max_log_ratio")[0], 0);
    EXPECT_NE(run.metrics.at("max_log_ratio")[1], 0);
    EXPECT_NE(run.metrics.at("max_log_ratio")[2], 0);
  }
  EXPECT_EQ(HashOf(RunMethod(*whole, "threads")), HashOf(run));
  const MethodRun half = RunMethod(*Make(GetParam(), settings + "total_steps: 2\n"));
  EXPECT_EQ(HashOf(RunMethod(*whole, "serial", &half.cut)), HashOf(run));
  const auto rounded = Make(GetParam(), settings + "total_steps: 4\nprecision: bf16\n");
  EXPECT_EQ(HashOf(RunMethod(*rounded, "threads")), HashOf(RunMethod(*rounded)));
  const MethodRun lockstep =
      RunMethod(*Make(GetParam(), settings + "total_steps: 4\nmax_lag: 0\n"));
  EXPECT_NE(HashOf(lockstep), HashOf(run));
}

TEST_P(Online, RaisesItsReward) {
  const MethodRun run = RunMethod(*Make(GetParam(), "total_steps: 40\nprompts: 4\ngroup: 8\n"));
  const auto& reward = run.metrics.at("reward");
  double first = 0, last = 0;
  for (size_t i = 0; i < 5; ++i) {
    first += reward[i] / 5;
    last += reward[reward.size() - 1 - i] / 5;
  }
  EXPECT_GT(last, first + 0.05) << first << " -> " << last;
}

TEST_F(OnlineBase, TemperatureIsTheSameEverywhere) {
  const MethodRun run = RunMethod(*Make("grpo", "total_steps: 1\ntemperature: 0.7\nbeta: 0.1\n"));
  EXPECT_EQ(run.metrics.at("max_log_ratio")[0], 0);
  EXPECT_EQ(run.metrics.at("kl")[0], 0);
}

TEST_F(OnlineBase, ResamplesPromptsWhoseAnswersAreAllWorthTheSame) {
  const std::string rare =
      "rewards: [{name: regex, pattern: \"[aeiou]\"}]\ngroup: 2\ntotal_steps: 3\n";
  const MethodRun plain = RunMethod(*Make("grpo", rare));
  const MethodRun dynamic = RunMethod(*Make("grpo", rare + "resample_rounds: 20\n"));
  const auto least = [](const MethodRun& run) {
    return std::ranges::min(run.metrics.at("mixed_groups"));
  };
  EXPECT_LT(least(plain), 1);
  EXPECT_EQ(least(dynamic), 1);
  EXPECT_EQ(dynamic.metrics.at("reward").size(), 3u);
}

TEST_F(OnlineBase, StopsWhenItIsTooFarFromWhereItBegan) {
  const MethodRun run = RunMethod(*Make("grpo", "total_steps: 50\nkl_stop: 0.01\n"));
  EXPECT_LT(run.metrics.at("reward").size(), 50u);
  EXPECT_GT(run.metrics.at("kl").back(), 0.01);
}

TEST_F(OnlineBase, ADivergenceFromTheReferenceHoldsThePolicyBack) {
  const auto kl = [&](const std::string& beta) {
    return RunMethod(*Make("grpo", "total_steps: 12\nkl_stop: 1000\nbeta: " + beta + "\n"))
        .metrics.at("kl")
        .back();
  };
  EXPECT_LT(kl("1"), 0.5 * kl("0"));
}

TEST_P(Online, IsJudgedOnTheWayAndLearnsTheSame) {
  const std::string data =
      "total_steps: 8\nevaluation_samples: 2\ndata: {files: " + folder_.Path("prompts.jsonl") +
      ", evaluation_files: " + folder_.Path("prompts.jsonl") + ", evaluation_prompts: 5}\n";
  const uint64_t hash = HashOf(RunMethod(*Make(GetParam(), data)));
  const auto judged = Make(GetParam(), data + "evaluate_every: 2\n");
  judged->run_folder = folder_.Path("");
  const MethodRun run = RunMethod(*judged);
  EXPECT_EQ(HashOf(run), hash);
  EXPECT_EQ(HashOf(RunMethod(*judged, "threads")), hash);
  const MethodRun half = RunMethod(*Make(GetParam(), data + "evaluate_every: 2\ntotal_steps: 4\n"));
  EXPECT_EQ(HashOf(RunMethod(*judged, "serial", &half.cut)), hash);

  const auto& reward = run.metrics.at("evaluation_reward");
  ASSERT_EQ(reward.size(), 4u);  // before the first step, the third, ..
  EXPECT_EQ(std::filesystem::exists(folder_.Path("best/model.safetensors")),
            *std::max_element(reward.begin() + 1, reward.end()) > reward[0]);
  // The first is what the end of the run says of the start model.
  std::filesystem::create_directory(folder_.Path("end"));
  const auto figures = judged->Finish(run.policy(), folder_.Path("end"));
  const auto before = std::ranges::find(figures, "held_out_before", &LanguageMethod::Figure::name);
  ASSERT_NE(before, figures.end());
  EXPECT_NEAR(reward[0], before->value, 1e-12);
}

TEST_F(OnlineBase, EvaluationsNeedPromptsAnswersAndTheWeightsThatAnswer) {
  const auto problem = [&](const std::string& more) {
    try {
      RunMethod(*Make("grpo", "total_steps: 2\nevaluate_every: 1\n" + more));
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_THAT(problem(""), testing::HasSubstr("no held-out prompts"));
  EXPECT_THAT(problem("evaluation_samples: 0\n"), testing::HasSubstr("evaluation_samples"));
  EXPECT_THAT(problem("max_lag: 1\n"), testing::HasSubstr("max_lag"));
}

TEST_F(OnlineBase, PromptsOfSeveralFilesComeInTheirShares) {
  for (const char* name : {"a", "b"}) {
    std::string rows;
    for (int i = 0; i < (name[0] == 'a' ? 5 : 50); ++i) {
      rows += R"({"prompt":"one","completion":")" + std::string(name) + "\"}\n";
    }
    WriteFileAtomic(folder_.Path(name), rows);
  }
  PromptConfig config;
  config.files = {folder_.Path("a"), folder_.Path("b")};
  config.evaluation_prompts = 0;
  const auto of_a = [](const std::vector<Prompt>& prompts) {
    return std::ranges::count(prompts, "a", &Prompt::expected);
  };
  EXPECT_EQ(of_a(PromptStream(config, folder_.Path("model"), 1).Next(55)), 5);
  config.weights = {3, 1};
  PromptStream stream(config, folder_.Path("model"), 1);
  EXPECT_EQ(of_a(stream.Next(4)), 3);
  EXPECT_EQ(of_a(stream.Next(40)), 30);
  PromptStream again(config, folder_.Path("model"), 1);
  again.Load(stream.Save());
  EXPECT_EQ(of_a(again.Next(3)), of_a(stream.Next(3)));
  config.weights.clear();
  EXPECT_THROW(PromptStream(config, folder_.Path("model"), 1).Load(stream.Save()), Error);
  config.weights = {1};
  EXPECT_THROW(config.Check(), ConfigProblem);
}

TEST_F(OnlineBase, DataStayLikelyWhileThePolicyLearns) {
  const std::string row = R"({"prompt":"one ","completion":"zzz"})";
  WriteFileAtomic(folder_.Path("kept.jsonl"), row + "\n" + row + "\n");
  const std::string ptx = "total_steps: 8\nptx: {coefficient: 5, batch: 2, data: {files: " +
                          folder_.Path("kept.jsonl") + ", evaluation_share: 0}}\n";
  const auto whole = Make("ppo", ptx);
  const MethodRun run = RunMethod(*whole);
  const auto& loss = run.metrics.at("ptx_loss");
  EXPECT_LT(loss.back(), 0.7 * loss.front());
  const MethodRun half = RunMethod(*Make("ppo", ptx + "total_steps: 3\n"));
  EXPECT_EQ(HashOf(RunMethod(*whole, "serial", &half.cut)), HashOf(run));
}

TEST_F(OnlineBase, SimilarityNeedsACompletionOfEveryPrompt) {
  const std::string similarity =
      "total_steps: 2\nrewards: [{name: similarity, path: " WEFT_TEST_DATA "/language/encoder}]\n";
  try {
    RunMethod(*Make("grpo", similarity));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_THAT(error.message(), testing::HasSubstr("prompts.jsonl:1: there is no completion, "
                                                    "which the reward similarity compares"));
  }
  const std::string path = folder_.Path("answered.jsonl");
  WriteFileAtomic(path, R"({"prompt":[{"role":"user","content":"one"}],)"
                        R"("completion":[{"role":"assistant","content":"the word"}]})"
                        "\n"
                        R"({"prompt":"two","completion":"a long word"})"
                        "\n");
  PromptConfig prompts;
  prompts.files = {path};
  std::set<std::string> expected;
  for (const Prompt& prompt : PromptStream(prompts, folder_.Path("model"), 1).Next(2)) {
    expected.insert(prompt.expected);
  }
  EXPECT_THAT(expected, testing::ElementsAre("a long word", "the word"));

  const auto method =
      Make("grpo", similarity + "data: {files: " + path + ", evaluation_prompts: 0}\n");
  const MethodRun run = RunMethod(*method);
  EXPECT_EQ(HashOf(RunMethod(*method, "threads")), HashOf(run));
  for (const double reward : run.metrics.at("reward")) {
    EXPECT_GT(reward, -1);
    EXPECT_LT(reward, 1);
    EXPECT_NE(reward, 0);
  }
}

TEST_F(OnlineBase, KeepsEverySampleInItsLedger) {
  const auto method = Make("grpo", "total_steps: 3\n");
  method->run_folder = folder_.Path("");
  const MethodRun run = RunMethod(*method);
  const auto lines = [&] {
    std::vector<JsonValue> all;
    const std::string text = ReadFile(folder_.Path("samples.jsonl"));
    for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
      all.push_back(ParseJson(text.substr(at, text.find('\n', at) - at), "samples.jsonl"));
    }
    return all;
  };
  const std::vector<JsonValue> all = lines();
  ASSERT_EQ(all.size(), 3u * 16);
  // Said again from what the line holds.
  const auto file = ModelFile::Open(folder_.Path("model"));
  const auto model = LoadTransformer({}, *file, {.precision = Precision::kFloat32});
  const JsonValue& line = all[5];
  GenerationRequest request;
  for (const JsonValue& id : line.Find("prompt")->Items()) {
    int64_t value = 0;
    ASSERT_TRUE(id.GetInteger(value));
    request.prompt.push_back(static_cast<int32_t>(value));
  }
  const Tokenizer tokenizer = LoadTokenizerOf(*file);
  request.stop_ids = StopIds(*file, tokenizer);
  request.max_new_tokens = 6;
  request.seed = 1;
  int64_t sample = 0;
  ASSERT_TRUE(line.Find("sample")->GetInteger(sample));
  request.first_sample = static_cast<uint64_t>(sample);
  const auto answers = Generate({}, *model, {&request, 1});
  std::string ids = "[";
  for (const int32_t id : answers[0][0].ids) ids += (ids == "[" ? "" : ",") + std::to_string(id);
  EXPECT_EQ(line.Find("ids")->ToText(), ids + "]");
  // A run that goes on from an earlier point makes the later lines again.
  const MethodRun half = RunMethod(*Make("grpo", "total_steps: 1\nledger: false\n"));
  RunMethod(*method, "serial", &half.cut);
  EXPECT_EQ(lines().size(), 3u * 16);
}

TEST_F(OnlineBase, WrongSettingsAreRefusedByName) {
  const auto fault = [&](const std::string& name, const std::string& more) {
    try {
      Make(name, more);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  using testing::HasSubstr;
  EXPECT_THAT(fault("grpo", "group: 1\n"), HasSubstr("group"));
  EXPECT_THAT(fault("grpo", "rewards: [{name: regex, pattern: \"(\"}]\n"), HasSubstr("pattern"));
  EXPECT_THAT(fault("grpo", "rewards: [{name: lettres}]\n"), HasSubstr("letters"));
  EXPECT_THAT(fault("grpo", "rewards: []\n"), HasSubstr("rewards"));
  EXPECT_THAT(fault("ppo", "dual_clip: 0.5\n"), HasSubstr("dual_clip"));
  EXPECT_THAT(fault("grpo", "minibatches: 3\n"), HasSubstr("minibatches"));
  EXPECT_THAT(fault("grpo", "data: {task: sort3, files: x.jsonl}\n"), HasSubstr("task"));
}

}  // namespace
}  // namespace weft
