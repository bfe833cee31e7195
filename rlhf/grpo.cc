// Group-relative policy optimisation (Shao et al. 2024) and its kin: several answers to each
// prompt, advantages from their rewards alone, no value function.
//
//   prompts ==> generator ==> scorer ==samples==> learner ==parameters==> generator
//
// Sampling and training run the same kernels, so the ratio of the first update is exactly 1.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/log.h"
#include "language/chat_model.h"
#include "language/model_name.h"
#include "rlhf/advantages.h"
#include "rlhf/language_learner.h"
#include "rlhf/policy_losses.h"
#include "rlhf/rollout.h"
#include "rlhf/samples.h"
#include "rlhf/tasks.h"

namespace weft {
namespace {

// ---- Config

class Grpo final : public LanguageTraining {
 public:
  std::string task = "sort3";
  int64_t prompts = 16, group = 8;
  std::string advantage = "group";
  std::string objective = "clipped";
  std::string aggregation = "token_mean";
  double clip_low = 0.2, clip_high = 0.2;
  double temperature = 1;
  int64_t held_out_samples = 4;

  void Fields(FieldVisitor& v) override {
    LanguageTraining::Fields(v);
    v.Choice("task", task, Task::Names(), "checkable task whose prompts are answered");
    v.Field("prompts", prompts, "prompts of a step", Range::Between(1, 4096));
    v.Field("group", group, "answers to each prompt", Range::Between(2, 1024));
    v.Choice("advantage", advantage, {"group", "group_mean", "leave_one_out"},
             "(r - mean) / (std + 1e-4) of the group; less its mean (Dr. GRPO); less the others' "
             "mean (RLOO)");
    v.Choice("objective", objective, {"clipped", "sequence", "cispo"},
             "ratio by token (PPO), by answer (GSPO), or held constant (CISPO)");
    v.Choice("aggregation", aggregation, {"token_mean", "sequence_mean", "constant_length"},
             "mean over all tokens, over answers of their means, or by the longest answer");
    v.Field("clip_low", clip_low, "bound on a falling ratio", Range::Between(0, 1));
    v.Field("clip_high", clip_high, "bound on a rising ratio", Range::AtLeast(0));
    v.Field("temperature", temperature, "of sampling, and of training alike", Range::Positive());
    v.Field("held_out_samples", held_out_samples,
            "answers to each of 200 held-out prompts, before and after; 0: none",
            Range::Between(0, 64));
  }

  void Check() const override {
    if (model.empty()) throw ConfigProblem("model", "name the model to begin with");
    if (temperature != 1) {
      throw ConfigProblem("temperature", "only 1 is trained at; top-k and its like would bias it");
    }
  }

  void Build(FragmentGraph& graph) const override;
  std::vector<Figure> Finish(const TensorMap& policy, const std::string& folder) const override;

  RolloutOptions Rollout() const {
    return {.model = ResolveModel(model),
            .precision = precision_in_use(),
            .task = task,
            .seed = seed,
            .prompts = prompts,
            .group = group,
            .max_new_tokens = Task(task).max_new_tokens(),
            .sampling = {.temperature = temperature}};
  }
  PolicyLossOptions LossOptions() const {
    return {.objective = objective == "clipped"    ? PolicyObjective::kClipped
                         : objective == "sequence" ? PolicyObjective::kSequence
                                                   : PolicyObjective::kCispo,
            .clip_low = clip_low,
            .clip_high = clip_high};
  }
  Aggregation Aggregate() const {
    if (aggregation == "token_mean") return Aggregation::kTokenMean;
    return aggregation == "sequence_mean" ? Aggregation::kSequenceMeanTokenMean
                                          : Aggregation::kConstantLength;
  }
};

// ---- Learner

class GrpoLearner final : public LanguageLearner {
 public:
  GrpoLearner(const Grpo& config, const Replica& replica)
      : LanguageLearner(config, replica),
        config_(config),
        longest_(Task(config.task).max_new_tokens()) {}

 protected:
  Learned Learn(const Message& message, weft::Ports& ports) override {
    const Samples samples = Samples::FromMap(message.body);
    const std::vector<double> advantage = Advantages(samples);
    Totals totals;
    // Groups whose answers are all worth the same teach nothing.
    for (size_t begin = 0; begin < samples.prompts.size();) {
      std::vector<size_t> chosen;
      int64_t tokens = 0;
      for (; begin < samples.prompts.size() && tokens < config_.micro_batch_tokens; ++begin) {
        if (!Mixed(samples, advantage, begin)) continue;
        chosen.push_back(begin);
        tokens += TokensOf(samples, begin);
      }
      if (!chosen.empty()) Improve(samples, advantage, chosen, totals);
    }
    double norm = 0;
    if (totals.groups > 0) norm = Minimise(ports);
    Report(samples, totals, norm, ports);
    return {.env_steps = env_steps() + 1};
  }

 private:
  struct Totals {
    double loss = 0, max_log_ratio = 0, approximate_kl = 0, tokens = 0;
    int64_t groups = 0;  // with mixed rewards
  };

  std::vector<double> Advantages(const Samples& samples) const {
    if (config_.advantage == "leave_one_out") {
      return LeaveOneOutAdvantages(samples.reward, samples.group);
    }
    const GroupScale scale =
        config_.advantage == "group" ? GroupScale::kUnbiased : GroupScale::kNone;
    return GroupAdvantages(samples.reward, samples.group, scale, 1e-4);
  }

  static bool Mixed(const Samples& samples, std::span<const double> advantage, size_t prompt) {
    return std::ranges::any_of(advantage.subspan(prompt * samples.group, samples.group),
                               [](double a) { return a != 0; });
  }
  static int64_t TokensOf(const Samples& samples, size_t prompt) {
    const auto first = static_cast<int64_t>(prompt) * samples.group;
    return std::ssize(samples.prompts[prompt]) + samples.responses.offsets[first + samples.group] -
           samples.responses.offsets[first];
  }

  void Improve(const Samples& samples, std::span<const double> advantage,
               std::span<const size_t> prompts, Totals& totals) {
    LanguageBatch batch;
    Responses responses;
    std::vector<double> old_log_p, token_advantage;
    for (const size_t prompt : prompts) {
      std::vector<std::span<const int32_t>> answers;
      for (int64_t i = static_cast<int64_t>(prompt) * samples.group;
           i < static_cast<int64_t>(prompt + 1) * samples.group; ++i) {
        answers.push_back(samples.responses.Of(std::span<const int32_t>(samples.ids), i));
        responses.Add(samples.responses.length(i));
        for (const float log_p : samples.responses.Of(std::span<const float>(samples.log_p), i)) {
          old_log_p.push_back(log_p);
          token_advantage.push_back(advantage[i]);
        }
      }
      batch.AddAnswers(samples.prompts[prompt], answers);
    }
    TransformerTrace trace;
    Tensor rows;
    const std::vector<float> log_p = LogProbabilities(batch, &trace, &rows);
    const std::vector<double> weight =
        TokenWeights(responses, config_.Aggregate(), longest_, samples.responses.count(),
                     samples.responses.tokens());
    const PolicyLoss loss =
        EvaluatePolicyLoss(responses, std::vector<double>(log_p.begin(), log_p.end()), old_log_p,
                           {}, token_advantage, weight, config_.LossOptions());
    AddGradient(batch, trace, rows, loss.d_log_p);
    const auto tokens = static_cast<double>(responses.tokens());
    totals.loss += loss.loss;
    totals.approximate_kl += loss.approximate_kl * tokens;
    totals.tokens += tokens;
    totals.max_log_ratio = std::max(totals.max_log_ratio, loss.max_log_ratio);
    totals.groups += std::ssize(prompts);
  }

  void Report(const Samples& samples, const Totals& totals, double norm, weft::Ports& ports) {
    const auto answers = static_cast<double>(samples.responses.count());
    const double mixed =
        static_cast<double>(totals.groups) / static_cast<double>(samples.prompts.size());
    const double reward =
        std::accumulate(samples.reward.begin(), samples.reward.end(), 0.0) / answers;
    ports.Log("episode_return", reward);
    ports.Log("reward", reward);
    ports.Log("mixed_groups", mixed);
    ports.Log("answer_tokens", static_cast<double>(samples.responses.tokens()) / answers);
    ports.Log("finished",
              std::accumulate(samples.finished.begin(), samples.finished.end(), 0.0) / answers);
    ports.Log("policy_loss", totals.loss);
    ports.Log("max_log_ratio", totals.max_log_ratio);
    ports.Log("gradient_norm", norm);
    ports.Log("learning_rate", learning_rate());
    unmixed_steps_ = totals.groups > 0 ? 0 : unmixed_steps_ + 1;
    if (unmixed_steps_ == 10) {
      LogWarn(
          "for 10 steps no prompt had answers of different worth: nothing is learnt any more "
          "(mean reward " +
          std::to_string(reward) + "); the policy has settled or collapsed");
    }
  }

  TensorMap SaveRest() const override {
    TensorMap state = LanguageLearner::SaveRest();
    state.Set("unmixed_steps", Tensor::From<int64_t>({1}, {unmixed_steps_}));
    return state;
  }
  void LoadRest(const TensorMap& state) override {
    LanguageLearner::LoadRest(state);
    unmixed_steps_ = state.At("unmixed_steps").data<int64_t>()[0];
  }

  const Grpo& config_;
  const int64_t longest_;
  int64_t unmixed_steps_ = 0;
};

// ---- Build

void Grpo::Build(FragmentGraph& graph) const {
  const RolloutOptions rollout = Rollout();
  graph.Add("prompts", 1, PromptSource(rollout), Role::kWorker);
  graph.Add("generator", 1, GeneratorFragment(rollout), Role::kWorker);
  graph.Add("scorer", 1, TaskScorer(rollout), Role::kWorker);
  graph.Add("learner", 1,
            {.ports = Learner::Ports("samples"), .make = [this](const Replica& replica) {
               return std::make_unique<GrpoLearner>(*this, replica);
             }});
  graph.Connect("prompts.prompts", "generator.prompts", Rows());
  graph.Connect("generator.samples", "scorer.unscored", Rows());
  graph.Connect("scorer.samples", "learner.samples", Rows());
  graph.Connect("learner.parameters", "generator.parameters", Broadcast(/*max_lag=*/0));
}

std::vector<LanguageMethod::Figure> Grpo::Finish(const TensorMap& policy,
                                                 const std::string& folder) const {
  std::vector<Figure> figures;
  if (held_out_samples > 0) {
    ThreadPool pool(ThreadBudget());
    const Context context{.pool = &pool};
    const ChatModel start =
        LoadChatModel(context, model, {.precision = precision_in_use(), .keep_quantised = false});
    const TaskAccuracy before =
        EvaluateTask(context, start, *start.model, task, seed, held_out_samples);
    const auto trained = Trained(context, policy, precision_in_use());
    const TaskAccuracy after = EvaluateTask(context, start, *trained, task, seed, held_out_samples);
    figures = {{"held_out_before", before.mean},
               {"held_out_before_error", before.error},
               {"held_out", after.mean},
               {"held_out_error", after.error},
               {"finished", after.finished}};
  }
  WriteModel(policy, folder);
  return figures;
}

WEFT_REGISTER_LANGUAGE_METHOD(Grpo, "grpo",
                              "group-relative policy optimisation of a chat model on a checkable "
                              "task: GRPO, Dr. GRPO, DAPO's clipping, GSPO, CISPO, RLOO");

}  // namespace
}  // namespace weft
