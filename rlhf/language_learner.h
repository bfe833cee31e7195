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
#include "language/language_model.h"
#include "language/model_files.h"
#include "language/tokenizer_files.h"
#include "learners/learner.h"
#include "learners/method.h"
#include "nn/optimizer.h"
#include "rlhf/samples.h"

namespace weft {

// Adapters beside the matrices instead of changed matrices (Hu et al. 2021).
struct LoraConfig : Config {
  int64_t rank = 0;  // 0: all weights are trained
  double alpha = 16;
  std::vector<std::string> targets = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                      "gate_proj", "up_proj", "down_proj"};

  void Fields(FieldVisitor& v) override;
  float scale() const { return static_cast<float>(alpha / static_cast<double>(rank)); }
};

// A running mean of the policy over updates, which is then what a run leaves and judges at its end
// (Polyak and Juditsky 1992).
struct MeanConfig : Config {
  double decay = 0;

  void Fields(FieldVisitor& v) override;
};

// Keys that all methods on language models have.
class LanguageTraining : public LanguageMethod {
 public:
  std::string model;
  std::string precision = "bf16";
  double learning_rate = 2e-5;
  double final_learning_rate = 0;
  std::string schedule = "constant";
  int64_t warmup_steps = 5;
  double max_gradient_norm = 1;
  int64_t micro_batch_tokens = 2048;
  bool recompute = false;
  std::string gguf = "q8_0";
  LoraConfig lora;
  MeanConfig ema;
  OptimizerConfig optimizer;

  LanguageTraining() {
    total_steps = 60;
    checkpoint.every = 1'000'000'000;  // a checkpoint is over a gigabyte: at the end, or when asked
    checkpoint.keep = 2;
    optimizer.decay_vectors = false;
  }
  void Fields(FieldVisitor& v) override;
  std::string Subject() const override { return model; }
  Precision precision_in_use() const {
    return precision == "f32" ? Precision::kFloat32 : Precision::kBFloat16;
  }
  // Whether the reference model is what the learner's adapters lie beside: where one thread steps
  // both, as the reference would otherwise wait for the learner.
  bool shares_base() const { return lora.rank > 0 && placement == "serial"; }
  virtual LearnerOptions LearnerSettings() const;
  // Of the optimiser's step `step` of total_steps, counted from 1: a straight rise over
  // warmup_steps, then as the schedule says.
  double LearningRate(int64_t step) const;

  // The policy, or its mean where the config asks for that.
  TensorMap Result(const TensorMap& learner) const override;
  // The model of a learner's policy, adapters merged in.
  std::unique_ptr<Transformer> Trained(const Context& context, const TensorMap& policy,
                                       Precision precision) const;
  // What the files of the trained model say beside its weights.
  virtual ModelDescription Description() const;
  // Writes it as a Hugging Face folder, FOLDER/NAME, with the tokenizer's files and, where the
  // config asks for one, FOLDER/NAME.gguf; with adapters also FOLDER/NAME_adapter in PEFT's format.
  void WriteModel(const TensorMap& policy, const std::string& folder,
                  const std::string& name = "model") const;

 protected:
  // What the weights are put into, with f32 masters; without adapters.
  virtual std::unique_ptr<Transformer> LoadStart(const Context& context,
                                                 const LoadOptions& options) const;
  virtual TextFiles TokenizerFiles() const;

 private:
  friend class LanguageLearner;
  void AddAdapters(Transformer& model) const;
};

// Several sequences in a row, some sharing their prompt's rows, with what is wanted of each row.
struct LanguageBatch {
  std::vector<int32_t> ids, positions, targets;  // target -1: none
  std::vector<kernels::AttentionSpan> spans;
  std::vector<float> noise;  // as TokenBatch has it

  int64_t tokens() const { return std::ssize(ids); }
  TokenBatch view() const {
    return {.ids = ids, .positions = positions, .spans = spans, .noise = noise};
  }
  // A prompt and answers to it: the prompt's last token stands before each answer, where its first
  // token is foreseen. Answers need a token each. learnt: 1 for each answer's tokens that are to be
  // foreseen; empty: all are. beginning: so many of the prompt's tokens, not its last, are those of
  // the batch's first span.
  void AddAnswers(std::span<const int32_t> prompt,
                  std::span<const std::span<const int32_t>> answers,
                  std::span<const std::span<const uint8_t>> learnt = {}, int64_t beginning = 0);
  // A sequence. learnt [ids]: 1 for each token that is to be foreseen by the one before it, so that
  // the last token needs no row and has none; empty: a row for every token, nothing is wanted.
  void AddSequence(std::span<const int32_t> sequence, std::span<const uint8_t> learnt);
  // Sequences of which nothing is wanted. What all begin with has its rows once; the rest of each,
  // its last token at least, has rows of its own. Returns the rows of their last tokens.
  std::vector<int64_t> AddBranches(std::span<const std::span<const int32_t>> sequences);
  // use(number, row) for the rows of which something is wanted.
  template <class F>
  void ForWanted(F&& use) const {
    int64_t number = 0;
    for (int64_t row = 0; row < tokens(); ++row) {
      if (targets[row] >= 0) use(number++, row);
    }
  }
};
// The answers to some of the prompts, in order.
LanguageBatch BatchOf(const Samples& samples, std::span<const int64_t> prompts);

struct Examples;

class LanguageLearner : public Learner {
 public:
  // temperature: logits are divided by it.
  LanguageLearner(const LanguageTraining& config, const Replica& replica, double temperature = 1);

 protected:
  const Context& context() const { return context_; }
  Transformer& model() { return *model_; }
  // log p of every wanted token of a batch, in order.
  std::vector<float> LogProbabilities(const LanguageBatch& batch, TransformerTrace* trace,
                                      Tensor* rows);
  // Adds the gradient of a loss whose derivatives by those log-probabilities are d_log_p and, where
  // it reads the rows too, by these d_rows [T, H] f32.
  void AddGradient(const LanguageBatch& batch, TransformerTrace& trace, const Tensor& rows,
                   std::span<const double> d_log_p, const Tensor* d_rows = nullptr);
  // Adds the gradient of weight times the mean of -log p over the examples' learnt tokens; returns
  // the mean (next_token.cc). noise_alpha: of noise on the embeddings; 0: none.
  double AddLikelihood(const Examples& examples, double weight, double noise_alpha = 0);
  // One optimiser step along what was added; returns the gradient's norm.
  double Minimise(weft::Ports& ports);
  double learning_rate() const;

  TensorMap Snapshot() override { return model_->Snapshot(); }
  TensorMap CopyPolicy() const override { return ShareState(parameters_); }
  void LoadPolicy(const TensorMap& policy) override;
  TensorMap SaveRest() const override;
  void LoadRest(const TensorMap& state) override;

 private:
  const LanguageTraining& config_;
  const Context context_;
  const HeadOptions head_;
  std::unique_ptr<Transformer> model_;
  std::vector<NamedParameter> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Tensor> mean_;  // of parameters_ over updates; empty: none is kept
  std::vector<NamedParameter> named_mean_;
};

}  // namespace weft
