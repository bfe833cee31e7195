// Models that give a number instead of a next token: a transformer with a score head. A reward
// model's number is that of a sequence's last real token, whose place is known by its length, never
// by the id of padding.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "language/chat_model.h"

namespace weft {

// A score head on a model that has none begins with N(0, 1 / (hidden + 1)) weights (Huang et al.
// 2024, "The N implementation details of RLHF with PPO"). A model that has one is loaded as it is;
// Error(kConfig) where it has more labels than one.
std::unique_ptr<Transformer> LoadScoreModel(const Context& context, const ModelFile& file,
                                            const LoadOptions& options, uint64_t seed);

// The scores of some rows of final_rows [T, H], by their numbers.
std::vector<float> ScoreRows(const Context& context, const Transformer& model,
                             const Tensor& final_rows, std::span<const int64_t> rows);
// Adds to the head's gradient from d loss / d scores of the same rows, which differ; returns d loss
// / d final_rows [T, H].
Tensor ScoreRowsGradient(const Context& context, Transformer& model, const Tensor& final_rows,
                         std::span<const int64_t> rows, std::span<const double> d_scores);

// Of a trained model's scores on answers it was not trained on: kept beside the weights, in
// score_normalisation.json.
struct ScoreNormalisation {
  double mean = 0, deviation = 1;

  // {0, 1} for a folder (or GGUF file) without such a file.
  static ScoreNormalisation Read(const std::string& model_path);
  void Write(const std::string& folder) const;
};

// A Hugging Face sequence-classification model with one label, ours or another's, for scoring.
class RewardModel {
 public:
  // By path or name (language/model_name.h). Error(kConfig) when it has no score head.
  static RewardModel Load(const Context& context, const std::string& name, Precision precision);

  // (score - mean) / deviation of each sequence at its last token; sequences have a token at least.
  // At most tokens_together tokens go through the model at a time (a longer sequence alone); scores
  // do not depend on it. Error(kDiverged) for one that is not finite.
  std::vector<double> Score(const Context& context, std::span<const std::vector<int32_t>> sequences,
                            int64_t tokens_together = 2048) const;

  // Whose words it was trained on: another model's ids mean nothing to it.
  const Tokenizer& tokenizer() const { return chat_.tokenizer; }
  const ChatModel& chat() const { return chat_; }
  const ScoreNormalisation& normalisation() const { return normalisation_; }

 private:
  RewardModel(ChatModel chat, const ScoreNormalisation& normalisation)
      : chat_(std::move(chat)), normalisation_(normalisation) {}

  ChatModel chat_;
  ScoreNormalisation normalisation_;
};

}  // namespace weft
