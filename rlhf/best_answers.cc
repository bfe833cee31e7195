// Methods that take of several answers to a prompt the best one, or the best and the worst:
//   best_of_n  the best answers are learnt as if they had been given (rejection sampling; Touvron
//   et
//              al. 2023)
//   online_dpo the best is preferred to the worst, by DPO's loss (Guo et al. 2024)
#include <algorithm>

#include "rlhf/online.h"
#include "rlhf/preference_losses.h"

namespace weft {
namespace {

// ---- Config

class BestOfN final : public OnlineTraining {
 public:
  double least_reward = -1e30;

  void MethodFields(FieldVisitor& v) override {
    v.Field("least_reward", least_reward, "a best answer that is worth less is not learnt");
  }

 protected:
  std::unique_ptr<OnlineLearner> MakeLearner(const Replica& replica) const override;
};

class OnlineDpo final : public OnlineTraining {
 public:
  std::string objective = "sigmoid";

  OnlineDpo() {
    beta = 0.1;
    group = 2;
    prompts = 64;
  }
  void MethodFields(FieldVisitor& v) override {
    v.Field("beta", beta, "how far the policy may go from the model it began as: less is further",
            Range::Positive());
    v.Choice("objective", objective, {"sigmoid", "ipo"}, "the loss of a pair");
  }
  void Check() const override {
    OnlineTraining::Check();
    if (group < 2) throw ConfigProblem("group", "a pair takes 2 answers or more");
  }

 protected:
  bool needs_reference() const override { return true; }
  std::unique_ptr<OnlineLearner> MakeLearner(const Replica& replica) const override;
};

// ---- Learners

// The first best and the first worst answer of each group: their places.
struct Extremes {
  int64_t best, worst;
};
Extremes ExtremesOf(std::span<const double> reward, int64_t first, int64_t group) {
  const auto some = reward.subspan(static_cast<size_t>(first), static_cast<size_t>(group));
  return {.best = first + (std::ranges::max_element(some) - some.begin()),
          .worst = first + (std::ranges::min_element(some) - some.begin())};
}

// The advantage of an answer's tokens.
void Mark(int64_t answer, double value, Lesson& lesson) {
  const std::vector<int64_t>& offsets = lesson.samples.responses.offsets;
  std::fill(lesson.advantage.begin() + offsets[answer],
            lesson.advantage.begin() + offsets[answer + 1], value);
}

class BestOfNLearner final : public OnlineLearner {
 public:
  BestOfNLearner(const BestOfN& config, const Replica& replica)
      : OnlineLearner(config, replica), config_(config) {}

 protected:
  // advantage: 1 on the tokens that are learnt.
  void Judge(Lesson& lesson, weft::Ports&) override {
    const Samples& samples = lesson.samples;
    lesson.advantage.assign(static_cast<size_t>(samples.responses.tokens()), 0);
    for (int64_t p = 0; p < std::ssize(samples.prompts); ++p) {
      const int64_t best = ExtremesOf(samples.reward, p * samples.group, samples.group).best;
      lesson.teaches[p] = samples.reward[best] >= config_.least_reward;
      Mark(best, 1, lesson);
    }
  }
  // The mean over minibatches' best answers' tokens of -log p: by answers of the minibatch, so that
  // micro-batches add up.
  LessonLoss Loss(const LessonPart& part, std::span<const double> log_p,
                  std::span<const double>) const override {
    LessonLoss result{.d_log_p = std::vector<double>(log_p.size())};
    for (int64_t i = 0; i < part.responses.count(); ++i) {
      const double each = part.answer_weight * static_cast<double>(config_.group) /
                          static_cast<double>(part.responses.length(i));
      for (int64_t t = part.responses.offsets[i]; t < part.responses.offsets[i + 1]; ++t) {
        result.loss -= each * part.advantage[t] * log_p[t];
        result.d_log_p[t] = -each * part.advantage[t];
      }
    }
    return result;
  }

 private:
  const BestOfN& config_;
};

class OnlineDpoLearner final : public OnlineLearner {
 public:
  OnlineDpoLearner(const OnlineDpo& config, const Replica& replica)
      : OnlineLearner(config, replica), config_(config) {}

 protected:
  // advantage: 1 on the chosen answer's tokens, -1 on the rejected one's.
  void Judge(Lesson& lesson, weft::Ports&) override {
    const Samples& samples = lesson.samples;
    lesson.advantage.assign(static_cast<size_t>(samples.responses.tokens()), 0);
    for (int64_t p = 0; p < std::ssize(samples.prompts); ++p) {
      const Extremes pair = ExtremesOf(samples.reward, p * samples.group, samples.group);
      lesson.teaches[p] = samples.reward[pair.best] > samples.reward[pair.worst];
      if (lesson.teaches[p] == 0) continue;
      Mark(pair.best, 1, lesson);
      Mark(pair.worst, -1, lesson);
    }
  }

  LessonLoss Loss(const LessonPart& part, std::span<const double> log_p,
                  std::span<const double>) const override {
    std::vector<int64_t> chosen, rejected;
    for (int64_t i = 0; i < part.responses.count(); ++i) {
      const double sign = part.advantage[part.responses.offsets[i]];
      if (sign != 0) (sign > 0 ? chosen : rejected).push_back(i);
    }
    const auto sums = [&](std::span<const int64_t> answers, std::span<const double> of) {
      std::vector<double> result;
      for (const int64_t i : answers) {
        double sum = 0;
        for (const double x : part.responses.Of(of, i)) sum += x;
        result.push_back(sum);
      }
      return result;
    };
    std::vector<int64_t> chosen_length, rejected_length;
    for (const int64_t i : chosen) chosen_length.push_back(part.responses.length(i));
    for (const int64_t i : rejected) rejected_length.push_back(part.responses.length(i));
    const PairLoss pairs = DirectPreference(
        sums(chosen, log_p), sums(rejected, log_p), sums(chosen, part.reference_log_p),
        sums(rejected, part.reference_log_p), chosen_length, rejected_length,
        {.objective = config_.objective == "sigmoid" ? PreferenceObjective::kSigmoid
                                                     : PreferenceObjective::kIpo,
         .beta = config_.beta});
    // Means over the part's pairs, to shares of the minibatch's prompts.
    const double share = static_cast<double>(chosen.size()) * part.answer_weight *
                         static_cast<double>(config_.group);
    LessonLoss result{.loss = share * pairs.loss, .d_log_p = std::vector<double>(log_p.size())};
    const auto spread = [&](std::span<const int64_t> answers, std::span<const double> d) {
      for (size_t pair = 0; pair < answers.size(); ++pair) {
        std::fill(result.d_log_p.begin() + part.responses.offsets[answers[pair]],
                  result.d_log_p.begin() + part.responses.offsets[answers[pair] + 1],
                  share * d[pair]);
      }
    };
    spread(chosen, pairs.d_chosen);
    spread(rejected, pairs.d_rejected);
    return result;
  }

 private:
  const OnlineDpo& config_;
};

// ---- Build

std::unique_ptr<OnlineLearner> BestOfN::MakeLearner(const Replica& replica) const {
  return std::make_unique<BestOfNLearner>(*this, replica);
}
std::unique_ptr<OnlineLearner> OnlineDpo::MakeLearner(const Replica& replica) const {
  return std::make_unique<OnlineDpoLearner>(*this, replica);
}

WEFT_REGISTER_LANGUAGE_METHOD(BestOfN, "best_of_n",
                              "rejection sampling: the best of several answers is learnt");
WEFT_REGISTER_LANGUAGE_METHOD(
    OnlineDpo, "online_dpo",
    "direct preference of the best answer to the worst, as they are given");

}  // namespace
}  // namespace weft
