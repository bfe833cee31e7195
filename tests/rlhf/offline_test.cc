// Methods that learn from data on disk, on a model of a few thousand weights: gradients, and what
// their steps must not depend on.
#include "rlhf/offline.h"

#include <cmath>
#include <gtest/gtest.h>

#include "base/check.h"
#include "rlhf/reward_model.h"
#include "tests/base/temporary_folder.h"
#include "tests/rlhf/method_run.h"
#include "tests/rlhf/tiny_words.h"

namespace weft {
namespace {

const char* const kChats[] = {
    R"({"messages":[{"role":"user","content":"one"},{"role":"assistant","content":"two"}]})",
    R"({"text":"words without a chat"})", R"({"prompt":"three ","completion":"four and five"})",
    R"({"messages":[{"role":"user","content":"six?"},{"role":"assistant","content":"7"},)"
    R"({"role":"user","content":"8"},{"role":"assistant","content":"nine, ten"}]})",
    R"({"text":"eleven"})"};
const char* const kPairs[] = {
    R"({"prompt":"one ","chosen":"two","rejected":"seven and more"})",
    R"({"prompt":[{"role":"user","content":"q"}],"chosen":[{"role":"assistant","content":"a"}],)"
    R"("rejected":[{"role":"assistant","content":"bcd"}]})",
    R"({"chosen":"the sky is blue","rejected":"the sky is low","margin":0.5})",
    R"({"prompt":"three ","chosen":"four","rejected":"0"})"};

class Offline : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    WriteTinyModel(folder_.Path("model"));
    std::string chats, pairs;
    for (const char* row : kChats) chats += std::string(row) + "\n";
    for (const char* row : kPairs) pairs += std::string(row) + "\n";
    WriteFileAtomic(folder_.Path("chats.jsonl"), chats);
    WriteFileAtomic(folder_.Path("pairs.jsonl"), pairs);
  }

  std::unique_ptr<LanguageMethod> Make(const std::string& name, const std::string& more) const {
    const std::string file = folder_.Path(name == "sft" ? "chats.jsonl" : "pairs.jsonl");
    return ParseMethod(name, "model: " + folder_.Path("model") + "\ndata: {files: " + file +
                                 ", evaluation_files: " + file +
                                 "}\nprecision: f32\nthreads: 1\nwarmup_steps: 0\n" + more);
  }
  static MethodRun Train(const LanguageMethod& method, const std::string& placement = "serial",
                         const Cut* resume = nullptr) {
    return RunMethod(method, placement, resume);
  }
  const TemporaryFolder folder_;
};

std::string Rows(const std::string& name) {
  return name == "sft" ? "5" : name == "kto" ? "8" : "4";
}

// One step of plain descent at rate 1 moves the weights by the gradient g; along g / |g| the loss
// must fall at rate |g|.
TEST_P(Offline, AStepFollowsTheGradientOfTheWholeModel) {
  const std::string& name = GetParam();
  const auto method = Make(name, "total_steps: 1\nbatch: " + Rows(name) +
                                     "\nlearning_rate: 1\nschedule: constant\n"
                                     "max_gradient_norm: 0\noptimizer: {name: sgd}\n" +
                                     (name == "kto" ? "beta: 1\n" : ""));
  const auto& training = dynamic_cast<const OfflineTraining&>(*method);
  const auto file = ModelFile::Open(folder_.Path("model"));
  const LoadOptions load{.precision = Precision::kFloat32, .keep_master = true};
  const auto model = name == "reward_model" ? LoadScoreModel({}, *file, load, method->seed)
                                            : LoadTransformer({}, *file, load);
  const TensorMap start = CopyState(model->Parameters()), after = Train(*method).policy();
  double squares = 0;
  for (const auto& [tensor, value] : start) {
    const Tensor& moved = after.At(tensor.text());
    for (int64_t i = 0; i < value.stored_elements(); ++i) {
      const double g = value.data<float>()[i] - moved.data<float>()[i];
      squares += g * g;
    }
  }
  const double norm = std::sqrt(squares);
  ASSERT_GT(norm, 1e-3);

  ExampleSource source(training.data, {.model = folder_.Path("model"),
                                       .kind = name == "sft"   ? ExampleKind::kSequence
                                               : name == "kto" ? ExampleKind::kVerdict
                                                               : ExampleKind::kPair});
  Examples examples = source.evaluation();
  const auto reference_model = LoadTransformer({}, *file, load);
  if (name == "dpo" || name == "kto") {
    examples.reference = SequenceLogProbabilities({}, *reference_model, examples, 4096);
  }
  if (name == "kto") {
    // Far below zero, where its clamp holds: the divergence has no gradient.
    examples.mismatched_reference.assign(static_cast<size_t>(examples.count()), 0);
  }
  const auto loss_at = [&](double step) {
    TensorMap at;
    for (const auto& [tensor, value] : start) {
      Tensor shifted = value.Clone();
      const Tensor& moved = after.At(tensor.text());
      for (int64_t i = 0; i < value.stored_elements(); ++i) {
        const double g = value.data<float>()[i] - moved.data<float>()[i];
        shifted.data<float>()[i] = static_cast<float>(value.data<float>()[i] + step * g / norm);
      }
      at.Set(tensor, std::move(shifted));
    }
    LoadState(model->Parameters(), at);
    model->Refresh({});
    return training.Judge({}, *model, examples).front().value;
  };
  const double h = 2e-3;
  EXPECT_NEAR((loss_at(h) - loss_at(-h)) / (2 * h) / norm, 1, 0.01);
}

TEST_P(Offline, AStepDoesNotDependOnMicroBatches) {
  const std::string settings = "total_steps: 3\nbatch: 4\nlearning_rate: 1e-3\n";
  const MethodRun together = Train(*Make(GetParam(), settings + "micro_batch_tokens: 100000\n"));
  const MethodRun alone = Train(*Make(GetParam(), settings + "micro_batch_tokens: 1\n"));
  const MethodRun again =
      Train(*Make(GetParam(), settings + "micro_batch_tokens: 1\nrecompute: true\n"));
  const auto &a = together.metrics.at("loss"), &b = alone.metrics.at("loss");
  ASSERT_EQ(a.size(), 3u);
  EXPECT_NEAR(a[0], b[0], 1e-12);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-4);
  EXPECT_EQ(Hash(alone.policy()), Hash(again.policy())) << "recompute changes no bit";
}

TEST_P(Offline, PlacementAndResumeGiveTheSameBits) {
  const std::string settings = "batch: 3\nlearning_rate: 1e-3\nschedule: constant\n";
  const auto whole = Make(GetParam(), settings + "total_steps: 7\n");
  const MethodRun run = Train(*whole);
  EXPECT_EQ(Hash(Train(*whole, "threads").policy()), Hash(run.policy()));
  const MethodRun half = Train(*Make(GetParam(), settings + "total_steps: 3\n"));
  EXPECT_NE(Hash(half.policy()), Hash(run.policy()));
  EXPECT_EQ(Hash(Train(*whole, "serial", &half.cut).policy()), Hash(run.policy()));
}

TEST_P(Offline, TheFirstLossIsThatOfTheStartModelAndItFalls) {
  const auto method =
      Make(GetParam(), "total_steps: 30\nbatch: 4\nlearning_rate: 3e-3\nevaluate_every: 10\n");
  const MethodRun run = Train(*method);
  const auto& evaluation = run.metrics.at("evaluation_loss");
  ASSERT_EQ(evaluation.size(), 4u);
  EXPECT_LT(evaluation.back(), evaluation.front() - 0.01);
  if (GetParam() == "dpo") {
    EXPECT_DOUBLE_EQ(run.metrics.at("loss")[0], std::log(2.0)) << "log-ratios are 0 at first";
    EXPECT_EQ(run.metrics.at("reward_margin")[0], 0);
  }
  if (GetParam() == "kto") {
    EXPECT_EQ(run.metrics.at("loss")[0], 0.5);
    EXPECT_EQ(run.metrics.at("mismatched_kl")[0], 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, Offline,
                         testing::Values("sft", "dpo", "kto", "orpo", "simpo", "reward_model"),
                         [](const auto& information) { return information.param; });

class OfflineFiles : public Offline {
 protected:
  static TensorMap Rows(const Transformer& model, const LanguageBatch& batch) {
    TensorMap map;
    map.Set("rows", model.Forward({}, batch.view(), nullptr));
    return map;
  }
};

TEST_F(OfflineFiles, AdaptersAreTrainedAloneAndLeaveAnAdapterAndAModel) {
  const auto method = Make("sft",
                           "total_steps: 3\nbatch: 4\nlearning_rate: 1e-2\ngguf: none\n"
                           "lora: {rank: 2, alpha: 4, targets: [q_proj, down_proj]}\n");
  const MethodRun run = Train(*method);
  EXPECT_EQ(run.policy().size(), 2u * 2u * 2u);
  const auto& training = dynamic_cast<const OfflineTraining&>(*method);
  const auto figures = training.Finish(run.policy(), folder_.path());
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_LT(figures[1].value, figures[0].value);
  EXPECT_TRUE(FileExists(folder_.Path("model_adapter/adapter_model.safetensors")));
  EXPECT_TRUE(FileExists(folder_.Path("model/tokenizer.json")));
}

// Who samples with a snapshot samples with the adapters that are being trained.
TEST_F(OfflineFiles, ASnapshotCarriesItsAdapters) {
  const auto file = ModelFile::Open(folder_.Path("model"));
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    const auto trained = LoadTransformer({}, *file, {.precision = precision, .keep_master = true});
    const std::vector<std::string> targets = {"q_proj", "up_proj"};
    Rng rng(3, Purpose::kTest);
    trained->AddAdapters(2, 1.5f, targets, rng);
    LanguageBatch batch;
    batch.AddSequence(std::vector<int32_t>{1, 2, 3, 4, 5}, {});
    trained->Refresh({});
    const uint64_t plain = Hash(Rows(*trained, batch));
    Transformer sampler(file->config(), precision);
    for (int round = 0; round < 2; ++round) {
      for (const Transformer::AdapterSlot& slot : trained->Adapters()) {
        std::vector<float> rows(static_cast<size_t>(slot.adapter->b.in() * slot.adapter->b.out()));
        for (float& value : rows) value = static_cast<float>(rng.Normal());
        slot.adapter->b.SetRows(0, rows);
      }
      trained->Refresh({});
      sampler.Adopt(trained->Snapshot());
      const uint64_t adapted = Hash(Rows(*trained, batch));
      EXPECT_NE(adapted, plain);
      EXPECT_EQ(Hash(Rows(sampler, batch)), adapted) << "round " << round;
    }
  }
}

TEST_F(OfflineFiles, ARewardModelIsLoadedAsAScorer) {
  const auto method = Make("reward_model", "total_steps: 20\nbatch: 4\nlearning_rate: 3e-3\n");
  const MethodRun run = Train(*method);
  const std::string out = folder_.Path("run");
  MakeDirectories(out);
  const auto figures = method->Finish(run.policy(), out);
  const RewardModel model = RewardModel::Load({}, out + "/model", Precision::kBFloat16);
  EXPECT_GT(model.normalisation().deviation, 0);
  const auto& training = dynamic_cast<const OfflineTraining&>(*method);
  ExampleSource source(training.data, {.model = folder_.Path("model"), .kind = ExampleKind::kPair});
  std::vector<std::vector<int32_t>> sequences;
  for (int64_t s = 0; s < source.evaluation().sequences.count(); ++s) {
    const auto ids = source.evaluation().Ids(s);
    sequences.emplace_back(ids.begin(), ids.end());
  }
  const std::vector<double> scores = model.Score({}, sequences);
  EXPECT_EQ(model.Score({}, sequences, 1), scores) << "scores do not depend on company";
  double mean = 0, right = 0;
  for (size_t i = 0; i < scores.size(); i += 2) {
    mean += scores[i] + scores[i + 1];
    right += scores[i] > scores[i + 1];
  }
  EXPECT_EQ(right, 4);
  EXPECT_NEAR(mean / static_cast<double>(scores.size()), 0, 0.05);
}

TEST_F(OfflineFiles, AResumedRunFindsTheDataItBeganWith) {
  const auto method = Make("sft", "total_steps: 4\nbatch: 2\n");
  const MethodRun half = Train(*Make("sft", "total_steps: 2\nbatch: 2\n"));
  WriteFileAtomic(folder_.Path("chats.jsonl"), std::string(kChats[1]) + "\n" + kChats[4] + "\n");
  try {
    Train(*method, "serial", &half.cut);
    ADD_FAILURE() << "other rows";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_NE(error.message().find("chats.jsonl"), std::string::npos) << error.message();
  }
}

TEST_F(OfflineFiles, FilesAreMixedByTheirWeightsAndRowsComeOnceAnEpoch) {
  std::string many;
  for (int i = 0; i < 30; ++i) many += R"({"text":"row )" + std::to_string(i) + "\"}\n";
  WriteFileAtomic(folder_.Path("many.jsonl"), many);
  DataConfig config;
  config.files = {folder_.Path("many.jsonl"), folder_.Path("chats.jsonl")};
  config.weights = {3, 1};
  config.evaluation_share = 0.1;
  const ExampleOptions options{.model = folder_.Path("model")};
  ExampleSource source(config, options), other(config, options);
  const Examples drawn = source.Next(40);
  std::map<int64_t, int> first;
  for (const int64_t number : drawn.number) {
    if (number < 60) ++first[number];
  }
  EXPECT_EQ(source.evaluation().count(), 3 + 1);
  EXPECT_EQ(first.size(), 27u) << "every training row of the first file";
  int total = 0;
  for (const auto& [number, times] : first) total += times;
  EXPECT_EQ(total, 30) << "three of four rows are of the first file";
  // The same position, the same rows.
  other.Next(7);
  ExampleSource resumed(config, options);
  resumed.Load(other.Save());
  EXPECT_EQ(resumed.Next(20).number, other.Next(20).number);
}

TEST_F(OfflineFiles, ARowThatIsTooLongIsCountedOrAnError) {
  DataConfig config;
  config.files = {folder_.Path("chats.jsonl")};
  config.evaluation_share = 0;
  config.max_tokens = 12;
  const ExampleOptions options{.model = folder_.Path("model")};
  ExampleSource source(config, options);
  source.Next(2);
  EXPECT_GT(source.skipped(), 0);
  config.overlong = "error";
  ExampleSource strict(config, options);
  try {
    strict.Next(5);
    ADD_FAILURE() << "rows of more than 12 tokens";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("max_tokens is 12"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("chats.jsonl:"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace weft
