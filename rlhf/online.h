// What methods share that learn from a model's own answers.
//
//   prompts ==prompts==> generator ==samples==> [reference ==samples==>] scorer ==samples==>
//   learner
//                            ^==============================parameters============================|
//
// A method says what its samples teach (Judge) and with which loss (Loss); here are the answers,
// their rewards, the passes over them in minibatches and micro-batches, and what is reported.
// Sampling and training run the same kernels, so the ratio of the first update is exactly 1, and
// the KL divergence from the reference is exactly 0 as long as both have the same weights.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rlhf/counterpart.h"
#include "rlhf/data_source.h"
#include "rlhf/language_learner.h"
#include "rlhf/ledger.h"
#include "rlhf/policy_losses.h"
#include "rlhf/prompts.h"
#include "rlhf/rewards.h"
#include "rlhf/samples.h"

namespace weft {

class OnlineLearner;

// Text or chats that stay likely while the policy learns: their negative log-likelihood is a part
// of every update's loss (Ouyang et al. 2022, PPO-ptx).
struct PtxConfig : Config {
  double coefficient = 0;
  int64_t batch = 8;
  DataConfig data;

  void Fields(FieldVisitor& v) override;
};

class OnlineTraining : public LanguageTraining {
 public:
  PromptConfig prompts_from;
  EpisodeConfig episodes;
  int64_t prompts = 16, group = 8;
  int64_t max_new_tokens = 0;
  double temperature = 1;
  RewardList rewards;
  double beta = 0;
  int64_t epochs = 1, minibatches = 1;
  double kl_stop = 0;
  int64_t evaluation_samples = 4, evaluate_every = 0;
  int64_t show_every = 0;
  int64_t resample_rounds = 0;
  bool ledger = true;
  int64_t max_lag = 0;
  std::vector<std::string> drift_files;
  PtxConfig ptx;

  OnlineTraining() { micro_batch_tokens = 512; }

  void Fields(FieldVisitor& v) override;
  void Check() const override;
  LearnerOptions LearnerSettings() const override;
  void Build(FragmentGraph& graph) const override;
  // Held-out rewards before and after, the rate at which the trained model's beat the start's, and
  // how far it went; the trained model as files.
  std::vector<Figure> Finish(const TensorMap& policy, const std::string& folder) const override;

  int64_t TurnTokens() const;    // max_new_tokens, or the task's
  int64_t AnswerTokens() const;  // of all turns
  // The rewards of the config, or the task's or the counterpart's verdict.
  RewardSum MakeRewards() const;

 protected:
  // The rows of drift_files; may be none. quiet: without a word of those that are left out.
  Examples DriftRows(bool quiet) const;
  virtual std::unique_ptr<OnlineLearner> MakeLearner(const Replica& replica) const = 0;
  virtual bool needs_reference() const { return beta > 0 || kl_stop > 0; }
  // Of keys that only some methods read.
  virtual void MethodFields(FieldVisitor& v) = 0;
};

// A step's samples and what the method makes of them; by token means of all answers, in order.
struct Lesson {
  Samples samples;
  std::vector<double> advantage, returns, value;  // by token; the last two of methods with a critic
  std::vector<uint8_t> teaches;                   // by prompt
};

// Some prompts' answers, that go through the model together. Spans by token and by answer.
struct LessonPart {
  std::vector<int64_t> answers;  // their numbers in the lesson
  Responses responses;
  std::vector<double> old_log_p, reference_log_p, advantage, returns, value;  // by token
  std::vector<double> weight;  // of each token's loss, of the whole minibatch
  double answer_weight = 0;    // 1 / answers of the minibatch
};

struct LessonLoss {
  double loss = 0;
  std::vector<double> d_log_p, d_value;                       // by token
  double clipped = 0, approximate_kl = 0, max_log_ratio = 0;  // as PolicyLoss has them
};

class OnlineLearner : public LanguageLearner {
 public:
  OnlineLearner(const OnlineTraining& config, const Replica& replica);

 protected:
  // Sets what the loss reads, and which prompts teach anything.
  virtual void Judge(Lesson& lesson, weft::Ports& ports) = 0;
  virtual LessonLoss Loss(const LessonPart& part, std::span<const double> log_p,
                          std::span<const double> value) const = 0;
  virtual Aggregation aggregation() const { return Aggregation::kTokenMean; }

  // A critic: the value of each answer's tokens before they were said, from the rows that foresee
  // them. None here.
  virtual bool has_critic() const { return false; }
  virtual std::vector<double> Values(const LanguageBatch&, const Tensor&) const { return {}; }
  virtual void AddValueGradient(const LanguageBatch&, const Tensor&, std::span<const double>,
                                Tensor*) {}
  // After each optimiser step.
  virtual void OnUpdate(weft::Ports&) {}
  // Of all answers, in order, by the critic as it is.
  std::vector<double> ValuesOf(const Samples& samples);

  TensorMap SaveRest() const override;
  void LoadRest(const TensorMap& state) override;

 private:
  struct Totals {
    double loss = 0, ptx_loss = 0, clipped = 0, approximate_kl = 0, tokens = 0, max_log_ratio = 0,
           norm = 0;
    int64_t updates = 0;
  };

  Learned Learn(const Message& message, weft::Ports& ports) final;
  // What held-out prompts' answers are worth; the weights stay in the run's folder while they are
  // the best so far.
  void Evaluate(const Samples& samples, weft::Ports& ports);
  // Whether a step's samples are complete: with resampling, prompts whose answers are all worth the
  // same give way to others.
  bool Collect(Samples& samples);
  void Update(const Lesson& lesson, std::span<const int64_t> prompts, Totals& totals,
              weft::Ports& ports);
  void Improve(const Lesson& lesson, std::span<const int64_t> prompts, int64_t answers,
               int64_t tokens, Totals& totals);
  void Report(const Lesson& lesson, const Totals& totals, weft::Ports& ports);

  const OnlineTraining& config_;
  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<ExampleSource> ptx_;
  int64_t unmixed_steps_ = 0;
  double best_reward_ = -std::numeric_limits<double>::infinity();
  int64_t rounds_ = 0;  // of samples for this step so far
  Samples collected_;   // what is kept of them
};

}  // namespace weft
