// What methods that learn from data on disk share: the data fragment, a frozen reference model
// where one is asked for, and a learner that adds up gradients over micro-batches, evaluates on
// what was kept back and keeps the best model.
//
//   data ==batch==> [reference] ==batch==> learner
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rlhf/data_source.h"
#include "rlhf/language_learner.h"

namespace weft {

class OfflineLearner;

class OfflineTraining : public LanguageTraining {
 public:
  DataConfig data;
  int64_t batch = 16;
  int64_t evaluate_every = 0;

  void Fields(FieldVisitor& v) override;
  void Check() const override;
  std::string Subject() const override { return data.Subject(); }
  // What was kept back from training; may be empty.
  virtual Examples HeldOut() const;
  // Tokens of the largest micro-batch that learns, by the first steps' data.
  virtual int64_t LargestMicroBatch() const;
  void Build(FragmentGraph& graph) const override;
  std::vector<Figure> Finish(const TensorMap& policy, const std::string& folder) const override;

  // What the model is worth on examples, the loss first, without gradients.
  virtual std::vector<Figure> Judge(const Context& context, Transformer& judged,
                                    const Examples& examples) const = 0;
  // Leaves a model that is the best so far as FOLDER/best; judged holds the policy's weights.
  virtual void WriteBest(const Context& context, Transformer& judged, const Examples& held_out,
                         const TensorMap& policy, const std::string& folder) const;
  // What Finish adds to the figures.
  virtual std::vector<Figure> Compare(const Context& context, const Examples& held_out,
                                      Transformer& start, Transformer& trained) const;

 protected:
  virtual std::unique_ptr<OfflineLearner> MakeLearner(const Replica& replica) const = 0;
  virtual ExampleOptions ExamplesWanted() const = 0;
  // Output "batch", a DataStep a step; and its keys.
  virtual FragmentFactory MakeData() const;
  virtual void DataFields(FieldVisitor& v);
  // Whether examples carry the start model's log-probabilities, and whether also those of answers
  // to other examples' prompts (KTO).
  virtual bool needs_reference() const { return false; }
  virtual bool needs_mismatched() const { return false; }

 private:
  // The data once more, beside the fragment that learns from it and says what it leaves out.
  ExampleSource Look() const;
  // On what was kept back, before and after.
  std::vector<Figure> Judged(const TensorMap& policy) const;
};

class OfflineLearner : public LanguageLearner {
 public:
  OfflineLearner(const OfflineTraining& config, const Replica& replica)
      : LanguageLearner(config, replica), config_(config) {}

 protected:
  // Adds the gradient of the loss over all of the examples and logs what it is.
  virtual void Improve(const Examples& examples, weft::Ports& ports) = 0;

  Learned Learn(const Message& message, weft::Ports& ports) final;
  // Nobody acts on it; the reference model may share it.
  TensorMap Snapshot() override {
    return config_.shares_base() ? LanguageLearner::Snapshot() : TensorMap();
  }
  TensorMap SaveRest() const override;
  void LoadRest(const TensorMap& state) override;

 private:
  void Evaluate(const Examples& examples, weft::Ports& ports);

  const OfflineTraining& config_;
  double best_loss_ = 1e300;
  int64_t trained_tokens_ = 0;
};

// Calls use(begin, end) for runs of sequences [begin, end) of about `tokens` tokens; those of one
// example stay together.
void ForMicroBatches(const Examples& examples, int64_t tokens,
                     const std::function<void(int64_t begin, int64_t end)>& use);
// Sequences [begin, end), whole examples; pairs share the rows of their prompt.
LanguageBatch BatchOf(const Examples& examples, int64_t begin, int64_t end);
// The sum of log p of each sequence's learnt tokens.
std::vector<double> SequenceLogProbabilities(const Context& context, Transformer& model,
                                             const Examples& examples, int64_t micro_batch_tokens);
// Answers to the next example's prompt: the i-th has prompt i and the answer of i + 1 (the last:
// of the first).
Examples Mismatched(const Examples& examples);

}  // namespace weft
