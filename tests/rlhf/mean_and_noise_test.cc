// A running mean of the weights, and noise on the embeddings (NEFTune).
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "rlhf/next_token.h"
#include "tests/base/temporary_folder.h"
#include "tests/rlhf/method_run.h"
#include "tests/rlhf/tiny_words.h"

namespace weft {
namespace {

class Training : public testing::Test {
 protected:
  void SetUp() override {
    WriteTinyModel(folder_.Path("model"));
    std::string rows;
    for (const char* words : {"one two", "three four five", "six", "seven eight nine ten"}) {
      rows += R"({"text":")" + std::string(words) + "\"}\n";
    }
    WriteFileAtomic(folder_.Path("rows.jsonl"), rows);
  }
  std::unique_ptr<LanguageMethod> Make(const std::string& more) const {
    return ParseMethod("sft", "model: " + folder_.Path("model") +
                                  "\ndata: {files: " + folder_.Path("rows.jsonl") +
                                  ", evaluation_share: 0}\nprecision: f32\nthreads: 1\n"
                                  "warmup_steps: 0\nschedule: constant\nbatch: 4\n"
                                  "learning_rate: 1e-3\n" +
                                  more);
  }
  static TensorMap MeanOf(const LanguageMethod& method, const MethodRun& run) {
    return method.Result(run.cut.at("learner.0"));
  }
  static double Difference(const TensorMap& a, const TensorMap& b) {
    double worst = 0;
    for (const auto& [name, tensor] : a) {
      const auto x = tensor.data<float>(), y = b.At(name.text()).data<float>();
      for (size_t i = 0; i < x.size(); ++i) {
        worst = std::max(worst, std::fabs(double{x[i]} - y[i]));
      }
    }
    return worst;
  }

  const TemporaryFolder folder_;
};

TEST_F(Training, KeepsTheMeanOfTheWeightsOverUpdates) {
  const std::string ema = "ema: {decay: 0.75}\n";
  const auto whole = Make("total_steps: 3\n" + ema);
  const MethodRun run = RunMethod(*whole);
  // By hand: from the start's weights, a quarter of each update's.
  const auto start = LoadTransformer({}, *ModelFile::Open(folder_.Path("model")),
                                     {.precision = Precision::kFloat32, .keep_master = true});
  TensorMap mean = CopyState(start->Parameters());
  for (const char* steps : {"1", "2", "3"}) {
    const TensorMap policy = RunMethod(*Make("total_steps: " + std::string(steps) + "\n")).policy();
    for (const auto& [name, tensor] : mean) {
      Tensor handle = tensor;
      const auto to = handle.data<float>();
      const auto from = policy.At(name.text()).data<float>();
      for (size_t i = 0; i < to.size(); ++i) to[i] = 0.75f * to[i] + 0.25f * from[i];
    }
  }
  EXPECT_LT(Difference(MeanOf(*whole, run), mean), 1e-6);
  EXPECT_GT(Difference(MeanOf(*whole, run), run.policy()), 1e-4);
  // Training does not see it, and without it the policy is what a run leaves.
  const auto without = Make("total_steps: 3\n");
  const MethodRun plain = RunMethod(*without);
  EXPECT_EQ(Hash(plain.policy()), Hash(run.policy()));
  EXPECT_EQ(Hash(MeanOf(*without, plain)), Hash(plain.policy()));

  const MethodRun half = RunMethod(*Make("total_steps: 1\n" + ema));
  const MethodRun resumed = RunMethod(*whole, "serial", &half.cut);
  EXPECT_EQ(Hash(MeanOf(*whole, resumed)), Hash(MeanOf(*whole, run)));
  const MethodRun half_without = RunMethod(*Make("total_steps: 1\n"));
  try {
    RunMethod(*whole, "serial", &half_without.cut);
    FAIL() << "a mean began in the middle of a run";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("ema.decay"), std::string::npos) << error.what();
  }
}

TEST_F(Training, NoiseMakesOneHashWhateverTheMicroBatches) {
  const std::string noise = "neftune_alpha: 20\n";
  const auto whole = Make("total_steps: 4\n" + noise);
  const MethodRun run = RunMethod(*whole);
  EXPECT_GT(Difference(run.policy(), RunMethod(*Make("total_steps: 4\n")).policy()), 1e-4);
  EXPECT_EQ(Hash(RunMethod(*whole, "threads").policy()), Hash(run.policy()));
  const MethodRun half = RunMethod(*Make("total_steps: 2\n" + noise));
  EXPECT_EQ(Hash(RunMethod(*whole, "serial", &half.cut).policy()), Hash(run.policy()));
  const MethodRun apart =
      RunMethod(*Make("total_steps: 4\nmicro_batch_tokens: 1\nrecompute: true\n" + noise));
  EXPECT_LT(Difference(apart.policy(), run.policy()), 2e-5);
}

TEST(EmbeddingNoise, IsUniformByLengthAndTheSameHoweverExamplesAreCut) {
  Examples examples;
  for (const int64_t length : {5, 50}) {
    MarkedSequence sequence{.ids = {}, .learnt = {}};
    sequence.ids.assign(static_cast<size_t>(length), 1);
    sequence.learnt.assign(sequence.ids.size(), 1);
    examples.Add({.place = {}, .sequences = {sequence}}, length);
  }
  constexpr int64_t kHidden = 32;
  constexpr double kAlpha = 5;
  const auto noise = [&](int64_t begin, int64_t end, uint64_t seed, int64_t step) {
    return EmbeddingNoise(examples, begin, end, kHidden, kAlpha, seed, step);
  };
  std::vector<float> both = noise(0, 2, 1, 0);
  const std::vector<float> first = noise(0, 1, 1, 0), second = noise(1, 2, 1, 0);
  ASSERT_EQ(first.size(), 4u * kHidden);  // nothing is foreseen by a sequence's last token
  ASSERT_EQ(second.size(), 49u * kHidden);
  std::vector<float> joined = first;
  joined.insert(joined.end(), second.begin(), second.end());
  EXPECT_EQ(both, joined);
  EXPECT_NE(second, noise(1, 2, 2, 0));
  EXPECT_NE(second, noise(1, 2, 1, 1));
  const double bound = kAlpha / std::sqrt(50.0 * kHidden);
  double sum = 0, squares = 0, worst = 0;
  for (const float x : second) {
    sum += x;
    squares += double{x} * x;
    worst = std::max(worst, std::fabs(double{x}));
  }
  const auto count = static_cast<double>(second.size());
  EXPECT_LE(worst, bound);
  EXPECT_GT(worst, 0.98 * bound);
  EXPECT_NEAR(sum / count, 0, 4 * bound / std::sqrt(3 * count));
  EXPECT_NEAR(squares / count, bound * bound / 3, 0.05 * bound * bound);
  EXPECT_LE(std::ranges::max(first), kAlpha / std::sqrt(5.0 * kHidden));
  EXPECT_GT(std::ranges::max(first), bound) << "short sequences have more";
}

// Noise by which one token's embedding becomes another's makes it the other token.
TEST_F(Training, NoiseIsAddedToTheEmbeddings) {
  const auto model = LoadTransformer({}, *ModelFile::Open(folder_.Path("model")),
                                     {.precision = Precision::kFloat32, .keep_master = true});
  const int64_t hidden = model->config().hidden;
  std::vector<float> table;
  for (const auto& slot : model->Weights()) {
    if (slot.name != "model.embed_tokens.weight") continue;
    table.resize(static_cast<size_t>(slot.rows * slot.columns));
    slot.get(0, table);
  }
  ASSERT_FALSE(table.empty());
  LanguageBatch batch, other;
  batch.AddSequence(std::vector<int32_t>{10, 20, 30}, {});
  other.AddSequence(std::vector<int32_t>{40, 50, 60}, {});
  for (size_t t = 0; t < 3; ++t) {
    for (int64_t i = 0; i < hidden; ++i) {
      batch.noise.push_back(table[other.ids[t] * hidden + i] - table[batch.ids[t] * hidden + i]);
    }
  }
  const Tensor a = model->Forward({}, batch.view(), nullptr);
  const Tensor b = model->Forward({}, other.view(), nullptr);
  for (int64_t i = 0; i < a.elements(); ++i) {
    EXPECT_NEAR(a.data<float>()[i], b.data<float>()[i], 1e-4) << i;
  }
}

}  // namespace
}  // namespace weft
