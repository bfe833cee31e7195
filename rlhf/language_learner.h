// What learners of language models share: a transformer with f32 master weights, its optimiser, and
// steps that add up gradients over micro-batches.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/config.h"
#include "language/language_head.h"
#include "language/model_files.h"
#include "learners/learner.h"
#include "learners/method.h"
#include "nn/optimizer.h"

namespace weft {

// Keys that all methods on language models have.
class LanguageTraining : public LanguageMethod {
 public:
  std::string model;
  std::string precision = "bf16";
  double learning_rate = 2e-5;
  int64_t warmup_steps = 5;
  double max_gradient_norm = 1;
  int64_t micro_batch_tokens = 2048;
  OptimizerConfig optimizer;

  LanguageTraining() {
    total_steps = 60;
    checkpoint.every = 1'000'000'000;  // a checkpoint is over a gigabyte: at the end, or when asked
    checkpoint.keep = 2;
  }
  void Fields(FieldVisitor& v) override;
  std::string Subject() const override { return model; }
  Precision precision_in_use() const {
    return precision == "f32" ? Precision::kFloat32 : Precision::kBFloat16;
  }
  LearnerOptions LearnerSettings() const;
  // Writes the trained model as a Hugging Face folder, FOLDER/model, with the tokenizer's files.
  void WriteModel(const TensorMap& policy, const std::string& folder) const;
};

// Several sequences in a row, some sharing their prompt's rows, with what is wanted of each row.
struct LanguageBatch {
  std::vector<int32_t> ids, positions, targets;  // target -1: none
  std::vector<kernels::AttentionSpan> spans;

  int64_t tokens() const { return std::ssize(ids); }
  TokenBatch view() const { return {.ids = ids, .positions = positions, .spans = spans}; }
  // A prompt and answers to it: the prompt's last token stands before each answer, where its first
  // token is foreseen. Answers need a token each.
  void AddAnswers(std::span<const int32_t> prompt,
                  std::span<const std::span<const int32_t>> answers);
};

class LanguageLearner : public Learner {
 public:
  LanguageLearner(const LanguageTraining& config, const Replica& replica);

 protected:
  const Context& context() const { return context_; }
  Transformer& model() { return *model_; }
  // log p of every wanted token of a batch, in order.
  std::vector<float> LogProbabilities(const LanguageBatch& batch, TransformerTrace* trace,
                                      Tensor* rows);
  // Adds the gradient of a loss whose derivatives by those log-probabilities are d_log_p.
  void AddGradient(const LanguageBatch& batch, TransformerTrace& trace, const Tensor& rows,
                   std::span<const double> d_log_p);
  // One optimiser step along what was added; returns the gradient's norm.
  double Minimise(weft::Ports& ports);
  double learning_rate() const;

  TensorMap Snapshot() override { return model_->Snapshot(); }
  TensorMap CopyPolicy() const override { return CopyState(parameters_); }
  void LoadPolicy(const TensorMap& policy) override;
  TensorMap SaveRest() const override;
  void LoadRest(const TensorMap& state) override;

 private:
  const LanguageTraining& config_;
  const Context context_;
  std::unique_ptr<Transformer> model_;
  std::vector<NamedParameter> parameters_;
  std::vector<Tensor> gradients_;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace weft
