// Methods without a critic, which compare several answers to each prompt:
//   grpo         (r - mean) / std of the group (Shao et al. 2024), with the options of Dr. GRPO
//   (Liu et
//                al. 2025), DAPO (Yu et al. 2025), GSPO (Zheng et al. 2025) and CISPO (MiniMax
//                2025)
//   rloo         r less the mean of the others (Ahmadian et al. 2024)
//   reinforce_pp rewards to go with the divergence from the reference in them, whitened over the
//   whole
//                batch (Hu et al. 2025)
#include <algorithm>

#include "rlhf/advantages.h"
#include "rlhf/online.h"

namespace weft {
namespace {

// ---- Config

class CriticFree : public OnlineTraining {
 public:
  std::string advantage = "group";
  std::string objective = "clipped";
  std::string aggregation = "token_mean";
  double clip_low = 0.2, clip_high = 0.2;
  bool kl_in_reward = false;

  void MethodFields(FieldVisitor& v) override {
    v.Choice("advantage", advantage, {"group", "group_mean", "leave_one_out", "to_go"},
             "(r - mean) / (std + 1e-4) of the group; less its mean (Dr. GRPO); less the others' "
             "mean (RLOO); rewards to go, whitened over the batch (REINFORCE++)");
    v.Choice("objective", objective, {"clipped", "sequence", "cispo"},
             "ratio by token (PPO), by answer (GSPO), or held constant (CISPO)");
    v.Choice("aggregation", aggregation, {"token_mean", "sequence_mean", "constant_length"},
             "mean over all tokens, over answers of their means, or by the longest answer");
    v.Field("clip_low", clip_low, "bound on a falling ratio", Range::Between(0, 1));
    v.Field("clip_high", clip_high, "bound on a rising ratio", Range::AtLeast(0));
    v.Field("beta", beta, "weight of the divergence from the model it began as; 0: none",
            Range::AtLeast(0));
    v.Field("kl_in_reward", kl_in_reward,
            "the divergence lowers rewards (k1), instead of being a part of the loss (k3)");
  }
  void Check() const override {
    OnlineTraining::Check();
    if (group < 2 && advantage != "to_go") {
      throw ConfigProblem("group", "an answer alone cannot be compared; ask for 2 or more");
    }
  }
  PolicyLossOptions LossOptions() const {
    return {.objective = objective == "clipped"    ? PolicyObjective::kClipped
                         : objective == "sequence" ? PolicyObjective::kSequence
                                                   : PolicyObjective::kCispo,
            .clip_low = clip_low,
            .clip_high = clip_high,
            .beta = kl_in_reward ? 0 : beta};
  }

 protected:
  std::unique_ptr<OnlineLearner> MakeLearner(const Replica& replica) const override;
};

class Grpo final : public CriticFree {};

class Rloo final : public CriticFree {
 public:
  Rloo() {
    advantage = "leave_one_out";
    kl_in_reward = true;
  }
};

class ReinforcePlusPlus final : public CriticFree {
 public:
  ReinforcePlusPlus() {
    advantage = "to_go";
    kl_in_reward = true;
  }
};

// ---- Learner

class CriticFreeLearner final : public OnlineLearner {
 public:
  CriticFreeLearner(const CriticFree& config, const Replica& replica)
      : OnlineLearner(config, replica), config_(config) {}

 protected:
  void Judge(Lesson& lesson, weft::Ports&) override {
    const Samples& samples = lesson.samples;
    if (config_.advantage == "to_go") return JudgeTokens(lesson);
    std::vector<double> reward = samples.reward;
    if (config_.kl_in_reward && config_.beta > 0) {
      for (int64_t i = 0; i < samples.responses.count(); ++i) {
        for (int64_t t = samples.responses.offsets[i]; t < samples.responses.offsets[i + 1]; ++t) {
          reward[i] -= config_.beta *
                       EstimateKl(KlEstimator::kK1, samples.log_p[t], samples.reference_log_p[t]);
        }
      }
    }
    const std::vector<double> advantage = Compared(reward, samples.group);
    // Groups whose answers are all worth the same teach nothing, but to stay near the reference.
    const bool kl_teaches = !config_.kl_in_reward && config_.beta > 0;
    for (int64_t p = 0; p < std::ssize(samples.prompts); ++p) {
      const auto first = advantage.begin() + p * samples.group;
      lesson.teaches[p] =
          kl_teaches || std::any_of(first, first + samples.group, [](double a) { return a != 0; });
    }
    for (int64_t i = 0; i < samples.responses.count(); ++i) {
      lesson.advantage.insert(lesson.advantage.end(),
                              static_cast<size_t>(samples.responses.length(i)), advantage[i]);
    }
  }

  LessonLoss Loss(const LessonPart& part, std::span<const double> log_p,
                  std::span<const double>) const override {
    PolicyLoss loss =
        EvaluatePolicyLoss(part.responses, log_p, part.old_log_p, part.reference_log_p,
                           part.advantage, part.weight, config_.LossOptions());
    return {.loss = loss.loss,
            .d_log_p = std::move(loss.d_log_p),
            .clipped = loss.clipped,
            .approximate_kl = loss.approximate_kl,
            .max_log_ratio = loss.max_log_ratio};
  }

  Aggregation aggregation() const override {
    if (config_.aggregation == "token_mean") return Aggregation::kTokenMean;
    return config_.aggregation == "sequence_mean" ? Aggregation::kSequenceMeanTokenMean
                                                  : Aggregation::kConstantLength;
  }

 private:
  std::vector<double> Compared(std::span<const double> reward, int64_t group) const {
    if (config_.advantage == "leave_one_out") return LeaveOneOutAdvantages(reward, group);
    return GroupAdvantages(reward, group,
                           config_.advantage == "group" ? GroupScale::kUnbiased : GroupScale::kNone,
                           1e-4);
  }
  void JudgeTokens(Lesson& lesson) const {
    const Samples& samples = lesson.samples;
    const std::vector<double> old(samples.log_p.begin(), samples.log_p.end());
    const std::vector<double> reference(samples.reference_log_p.begin(),
                                        samples.reference_log_p.end());
    const std::vector<double> reward =
        TokenRewards(samples.responses, old, reference, samples.reward, samples.finished,
                     {.beta = config_.kl_in_reward ? config_.beta : 0});
    lesson.advantage = Whiten(RewardsToGo(samples.responses, reward, 1));
  }

  const CriticFree& config_;
};

// ---- Build

std::unique_ptr<OnlineLearner> CriticFree::MakeLearner(const Replica& replica) const {
  return std::make_unique<CriticFreeLearner>(*this, replica);
}

WEFT_REGISTER_LANGUAGE_METHOD(Grpo, "grpo",
                              "group-relative policy optimisation of a chat model: GRPO, Dr. GRPO, "
                              "DAPO's clipping, GSPO, CISPO");
WEFT_REGISTER_LANGUAGE_METHOD(Rloo, "rloo", "REINFORCE with the other answers' mean as baseline");
WEFT_REGISTER_LANGUAGE_METHOD(ReinforcePlusPlus, "reinforce_pp",
                              "REINFORCE++: rewards to go, whitened over the batch");

}  // namespace
}  // namespace weft
