#include "rlhf/reward_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "base/check.h"
#include "base/file.h"
#include "base/random.h"
#include "language/generator.h"
#include "language/json.h"
#include "language/model_name.h"
#include "rlhf/language_learner.h"

namespace weft {
namespace {

constexpr const char* kNormalisationFile = "/score_normalisation.json";

// The rows of x [T, H] by their numbers.
Tensor Picked(const Tensor& x, std::span<const int64_t> rows) {
  const int64_t width = x.dim(1);
  Tensor picked = Tensor::Empty({std::ssize(rows), width});
  for (size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(picked.data<float>().data() + static_cast<int64_t>(i) * width,
                x.data<float>().data() + rows[i] * width, width * sizeof(float));
  }
  return picked;
}

// As many of the sequences, from the first on, as begin alike and together have no more tokens than
// `most`, what they share counted once. One that shares much less than those before it is not of
// them: it has a prompt of its own.
struct Branches {
  std::vector<std::span<const int32_t>> sequences;
  int64_t tokens;

  Branches(std::span<const std::vector<int32_t>> from, int64_t most)
      : sequences({from[0]}), tokens(std::ssize(from[0])) {
    int64_t shared = tokens - 1, all = tokens;
    for (const std::span<const int32_t> next : from.subspan(1)) {
      const int64_t together =
          std::min({shared, SharedBeginning(from[0], next), std::ssize(next) - 1});
      const int64_t count = std::ssize(sequences);
      if (count > 1 && together < shared - shared / 8) return;
      if (all + std::ssize(next) - count * together > most) return;
      all += std::ssize(next);
      shared = together;
      tokens = all - count * shared;
      sequences.push_back(next);
    }
  }
};

}  // namespace

std::unique_ptr<Transformer> LoadScoreModel(const Context& context, const ModelFile& file,
                                            const LoadOptions& options, uint64_t seed) {
  ModelConfig config = file.config();
  if (config.labels > 1) {
    throw Error(ErrorCode::kConfig, file.path() + ": a score is one label, the model has " +
                                        std::to_string(config.labels));
  }
  if (config.labels == 1) return LoadTransformer(context, file, options);
  config.labels = 1;
  config.tied = false;
  auto model = std::make_unique<Transformer>(config, options.precision);
  for (const Transformer::WeightSlot& slot : model->Weights()) {
    std::vector<float> values(slot.rows * slot.columns);
    if (slot.name == "score.weight") {
      Rng rng(seed, Purpose::kInitialise);
      const double deviation = 1 / std::sqrt(static_cast<double>(config.hidden + 1));
      for (float& value : values) value = static_cast<float>(deviation * rng.Normal());
    } else {
      file.Find(slot.name).ReadRows(0, slot.rows, values.data());
    }
    slot.set(0, values);
  }
  model->Refresh(context);
  return model;
}

std::vector<float> ScoreRows(const Context& context, const Transformer& model,
                             const Tensor& final_rows, std::span<const int64_t> rows) {
  Tensor scores = Tensor::Empty({std::ssize(rows), 1});
  model.head().Forward(context, Picked(final_rows, rows), nullptr, scores);
  return {scores.data<float>().begin(), scores.data<float>().end()};
}

Tensor ScoreRowsGradient(const Context& context, Transformer& model, const Tensor& final_rows,
                         std::span<const int64_t> rows, std::span<const double> d_scores) {
  const int64_t width = final_rows.dim(1), count = std::ssize(rows);
  Tensor d_score = Tensor::Empty({count, 1}), d_rows = Tensor::Empty({count, width});
  for (int64_t i = 0; i < count; ++i) {
    d_score.data<float>()[i] = static_cast<float>(d_scores[i]);
  }
  float* const from = d_rows.data<float>().data();
  model.head().Backward(context, Picked(final_rows, rows), d_score, false, from);
  Tensor d_final = Tensor::Zeros(final_rows.shape());
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(d_final.data<float>().data() + rows[i] * width, from + i * width,
                width * sizeof(float));
  }
  return d_final;
}

ScoreNormalisation ScoreNormalisation::Read(const std::string& model_path) {
  const std::string path = model_path + kNormalisationFile;
  ScoreNormalisation normalisation;
  if (!FileExists(path)) return normalisation;
  const JsonValue json = ReadJsonFile(path);
  const JsonValue* mean = json.IsObject() ? json.Find("mean") : nullptr;
  const JsonValue* deviation = json.IsObject() ? json.Find("deviation") : nullptr;
  if (mean == nullptr || deviation == nullptr || !mean->GetDouble(normalisation.mean) ||
      !deviation->GetDouble(normalisation.deviation) || normalisation.deviation <= 0) {
    throw Error(ErrorCode::kCorrupt,
                path + ": needs the numbers mean and deviation, the latter above 0");
  }
  return normalisation;
}

void ScoreNormalisation::Write(const std::string& folder) const {
  WriteFileAtomic(
      folder + kNormalisationFile,
      JsonValue::MakeObject({{"mean", JsonValue(mean)}, {"deviation", JsonValue(deviation)}})
              .ToText(2) +
          "\n");
}

RewardModel RewardModel::Load(const Context& context, const std::string& name,
                              Precision precision) {
  ChatModel chat = LoadChatModel(context, name, {.precision = precision});
  if (chat.file->config().labels != 1) {
    throw Error(ErrorCode::kConfig, name +
                                        " is no reward model: it has no score head of one label " +
                                        "(weft train with algorithm: reward_model makes one)");
  }
  const auto normalisation = ScoreNormalisation::Read(chat.file->path());
  return {std::move(chat), normalisation};
}

std::vector<double> RewardModel::Score(const Context& context,
                                       std::span<const std::vector<int32_t>> sequences,
                                       int64_t tokens_together) const {
  std::vector<double> scores;
  while (!sequences.empty()) {
    LanguageBatch batch;
    std::vector<int64_t> last;
    while (!sequences.empty()) {
      const Branches next(sequences, tokens_together);
      if (!last.empty() && batch.tokens() + next.tokens > tokens_together) break;
      std::ranges::copy(batch.AddBranches(next.sequences), std::back_inserter(last));
      sequences = sequences.subspan(next.sequences.size());
    }
    const Tensor rows = chat_.model->Forward(context, batch.view(), nullptr);
    for (const float score : ScoreRows(context, *chat_.model, rows, last)) {
      if (!std::isfinite(score)) {
        throw Error(ErrorCode::kDiverged, chat_.file->path() + ": the score of sequence " +
                                              std::to_string(scores.size()) + " is not finite");
      }
      scores.push_back((score - normalisation_.mean) / normalisation_.deviation);
    }
  }
  return scores;
}

}  // namespace weft
