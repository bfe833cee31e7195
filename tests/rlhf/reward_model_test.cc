// Scores of a recorded sequence-classification model, and the gradient of its head.
#include "rlhf/reward_model.h"

#include <cmath>
#include <gtest/gtest.h>

#include "base/file.h"
#include "nn/safetensors.h"
#include "rlhf/language_learner.h"
#include "tests/base/temporary_folder.h"
#include "tests/language/reference_files.h"
#include "tests/language/tiny_model.h"

namespace weft {
namespace {

using Sequences = std::vector<std::vector<int32_t>>;

ModelConfig TinyScorer() {
  ModelConfig config = TinyConfig();
  config.labels = 1;
  config.tied = false;
  return config;
}

// The model's scores at the last tokens, as transformers records them, in batches of any size.
TEST(RewardModel, ScoresAsTransformersDoes) {
  const std::string folder = ReferencePath("language/models/llama_reward");
  if (folder.empty()) GTEST_SKIP() << "WEFT_REFERENCE is unset";
  const TensorMap want = ReadSafetensors(folder + "/expected.safetensors");
  const auto ids = want.At("input_ids_right").data<int64_t>();
  const auto mask = want.At("attention_mask_right").data<int64_t>();
  const int64_t rows = want.At("input_ids_right").dim(0),
                columns = want.At("input_ids_right").dim(1);
  const auto file = ModelFile::Open(folder);
  const auto model = LoadScoreModel({}, *file, {.precision = Precision::kFloat32}, 1);
  LanguageBatch batch;
  std::vector<int64_t> last, all;
  for (int64_t b = 0; b < rows; ++b) {
    std::vector<int32_t> sequence;
    for (int64_t t = 0; t < columns; ++t) {
      if (mask[b * columns + t] != 0)
        sequence.push_back(static_cast<int32_t>(ids[b * columns + t]));
    }
    batch.AddSequence(sequence, {});
    last.push_back(batch.tokens() - 1);
  }
  const Tensor final_rows = model->Forward({}, batch.view(), nullptr);
  const std::vector<float> scores = ScoreRows({}, *model, final_rows, last);
  for (int64_t b = 0; b < rows; ++b) {
    EXPECT_NEAR(scores[b], want.At("score").data<float>()[b], 1e-4) << "row " << b;
  }
}

TEST(RewardModel, SequencesThatBeginAlikeScoreAsThoughAlone) {
  const auto model = MakeTiny(TinyScorer());
  const std::vector<std::vector<std::vector<int32_t>>> groups = {
      {{1, 2, 3, 4, 5}, {1, 2, 3, 9}, {1, 2, 3, 4, 7, 8}},
      {{5, 6, 7}, {5, 6, 7}},    // one text twice
      {{8, 9, 10, 11}, {8, 9}},  // one the beginning of another
      {{3, 4}, {4, 3}, {12}}};   // nothing in common
  const std::vector<int64_t> tokens = {3 + 2 + 1 + 3, 2 + 1 + 1, 1 + 3 + 1, 2 + 2 + 1};
  LanguageBatch together;
  std::vector<int64_t> last;
  std::vector<float> alone;
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::vector<std::span<const int32_t>> views(groups[g].begin(), groups[g].end());
    const int64_t before = together.tokens();
    for (const int64_t row : together.AddBranches(views)) last.push_back(row);
    EXPECT_EQ(together.tokens() - before, tokens[g]) << "group " << g;
    for (const auto& sequence : groups[g]) {
      LanguageBatch batch;
      batch.AddSequence(sequence, {});
      const Tensor rows = model->Forward({}, batch.view(), nullptr);
      const std::vector<int64_t> end = {batch.tokens() - 1};
      alone.push_back(ScoreRows({}, *model, rows, end)[0]);
    }
  }
  const Tensor rows = model->Forward({}, together.view(), nullptr);
  EXPECT_EQ(ScoreRows({}, *model, rows, last), alone);
}

TEST(RewardModel, HeadGradientMatchesFiniteDifferences) {
  const auto model = MakeTiny(TinyScorer());
  model->EnableGradient();
  Numbers numbers(4);
  const auto values = numbers.Vector(5 * 32, 1.0f);
  Tensor rows = Tensor::From<float>({5, 32}, {values.begin(), values.end()});
  const std::vector<int64_t> at = {1, 4};
  const std::vector<double> d = {0.5, -2};
  const auto loss = [&] {
    const std::vector<float> scores = ScoreRows({}, *model, rows, at);
    return d[0] * scores[0] + d[1] * scores[1];
  };
  const Tensor d_rows = ScoreRowsGradient({}, *model, rows, at, d);
  for (const int64_t i : {int64_t{32 + 3}, int64_t{4 * 32 + 7}, int64_t{2 * 32 + 1}}) {
    float& x = rows.data<float>()[i];
    const float before = x;
    x = before + 0.5f;
    const double up = loss();
    x = before - 0.5f;
    const double down = loss();
    x = before;
    EXPECT_NEAR(d_rows.data<float>()[i], up - down, 1e-5);
  }
}

TEST(RewardModel, NormalisationIsReadAsItWasWritten) {
  const TemporaryFolder folder;
  EXPECT_EQ(ScoreNormalisation::Read(folder.path()).deviation, 1);
  ScoreNormalisation{.mean = 0.25, .deviation = 3}.Write(folder.path());
  EXPECT_EQ(ScoreNormalisation::Read(folder.path()).mean, 0.25);
  EXPECT_EQ(ScoreNormalisation::Read(folder.path()).deviation, 3);
  WriteFileAtomic(folder.path() + "/score_normalisation.json", R"({"mean": 1, "deviation": 0})");
  EXPECT_THROW(ScoreNormalisation::Read(folder.path()), Error);
}

}  // namespace
}  // namespace weft
