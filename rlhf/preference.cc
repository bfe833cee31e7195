// Learning from preferences without a reward model. One learner; what differs is the loss of a
// batch by its sequences' log-probabilities (preference_losses.h):
//
//   dpo     Rafailov et al. 2023 and its kin, pairs, against the start model
//   orpo    Hong et al. 2024, pairs, with the chosen answers' likelihood, no reference
//   simpo   Meng et al. 2024, pairs, mean log-probabilities, no reference
//   kto     Ethayarajh et al. 2024, single answers with a verdict, against the start model
//
//   data ==batch==> [reference] ==batch==> learner
#include <cmath>
#include <numeric>

#include "language/chat_model.h"
#include "language/model_name.h"
#include "rlhf/answer_evaluation.h"
#include "rlhf/offline.h"
#include "rlhf/preference_losses.h"
#include "rlhf/tasks.h"

namespace weft {
namespace {

using Values = std::vector<double>;

// ---- Config

// The loss of examples by the log-probabilities of their sequences.
struct BatchLoss {
  double loss = 0;
  Values d_log_p;  // [sequences]
  std::vector<LanguageMethod::Figure> figures;
};

class Preference : public OfflineTraining {
 public:
  int64_t held_out_samples = 4;

  Preference() {
    total_steps = 60;
    learning_rate = 5e-6;
    data.max_tokens = 1024;
  }
  void Fields(FieldVisitor& v) override {
    OfflineTraining::Fields(v);
    v.Field("held_out_samples", held_out_samples,
            "with data.task: answers to each of 200 held-out prompts, before and after; 0: none",
            Range::Between(0, 64));
  }
  // mismatched: log p of answers to others' prompts, where the method asks for them.
  virtual BatchLoss Loss(const Examples& examples, const Values& log_p,
                         const Values& mismatched) const = 0;
  bool wants_mismatched() const { return needs_mismatched(); }

  std::vector<Figure> Judge(const Context& context, Transformer& judged,
                            const Examples& examples) const override {
    Values mismatched;
    if (needs_mismatched()) {
      mismatched =
          SequenceLogProbabilities(context, judged, Mismatched(examples), micro_batch_tokens);
    }
    const BatchLoss loss =
        Loss(examples, SequenceLogProbabilities(context, judged, examples, micro_batch_tokens),
             mismatched);
    std::vector<Figure> figures = {{"loss", loss.loss}};
    figures.insert(figures.end(), loss.figures.begin(), loss.figures.end());
    return figures;
  }

  std::vector<Figure> Compare(const Context& context, const Examples&, Transformer& start,
                              Transformer& trained) const override {
    if (data.task.empty() || held_out_samples == 0) return {};
    const std::string path = ResolveModel(model);
    PromptConfig prompts;
    prompts.task = data.task;
    const PromptStream stream(prompts, path, seed);
    RewardList right;
    right.Add("exact");
    RewardSum reward(right, {});
    const Speaker speaker({.model = path, .max_new_tokens = Task::MaxNewTokens(data.task)});
    return AnswerEvaluation{.context = context,
                            .speaker = speaker,
                            .prompts = stream.held_out(),
                            .reward = reward,
                            .seed = seed,
                            .samples = held_out_samples}
        .Compare(start, trained);
  }

 protected:
  std::unique_ptr<OfflineLearner> MakeLearner(const Replica& replica) const override;
  ExampleOptions ExamplesWanted() const override {
    return {.model = ResolveModel(model), .kind = Kind(), .seed = seed};
  }
  virtual ExampleKind Kind() const { return ExampleKind::kPair; }
};

// Values by sequence, chosen and rejected in turn, as one list of each.
struct Sides {
  Values chosen, rejected;
};
Sides SplitSides(const Values& by_sequence) {
  Sides sides;
  for (size_t s = 0; s < by_sequence.size(); s += 2) {
    sides.chosen.push_back(by_sequence[s]);
    sides.rejected.push_back(by_sequence[s + 1]);
  }
  return sides;
}

struct Lengths {
  std::vector<int64_t> chosen, rejected;

  explicit Lengths(const Examples& examples) {
    for (int64_t s = 0; s < examples.sequences.count(); s += 2) {
      chosen.push_back(examples.LearntTokens(s));
      rejected.push_back(examples.LearntTokens(s + 1));
    }
  }
};

double Mean(const Values& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double ShareAbove(const Values& a, const Values& b) {
  double above = 0;
  for (size_t i = 0; i < a.size(); ++i) above += a[i] > b[i];
  return above / static_cast<double>(a.size());
}

BatchLoss FromPairs(const PairLoss& pairs) {
  BatchLoss batch{.loss = pairs.loss, .d_log_p = {}, .figures = {}};
  for (size_t i = 0; i < pairs.d_chosen.size(); ++i) {
    batch.d_log_p.push_back(pairs.d_chosen[i]);
    batch.d_log_p.push_back(pairs.d_rejected[i]);
  }
  return batch;
}

class Dpo final : public Preference {
 public:
  std::string objective = "sigmoid";
  double beta = 0.1, smoothing = 0;

  void Fields(FieldVisitor& v) override {
    Preference::Fields(v);
    v.Choice(
        "objective", objective, {"sigmoid", "robust", "hinge", "ipo", "ipo_mean"},
        "Rafailov et al. (with smoothing: cDPO), Chowdhury et al., SLiC, Azar et al., the same "
        "of means over tokens");
    v.Field("beta", beta, "how strongly the start model holds", Range::Positive());
    v.Field("smoothing", smoothing, "sigmoid, robust: share of pairs the wrong way round",
            Range::Between(0, 0.499));
  }
  BatchLoss Loss(const Examples& examples, const Values& log_p, const Values&) const override {
    const Sides policy = SplitSides(log_p), reference = SplitSides(examples.reference);
    const Lengths lengths(examples);
    const PairLoss pairs = DirectPreference(
        policy.chosen, policy.rejected, reference.chosen, reference.rejected, lengths.chosen,
        lengths.rejected, {.objective = Objective(), .beta = beta, .smoothing = smoothing});
    BatchLoss loss = FromPairs(pairs);
    const double chosen = beta * (Mean(policy.chosen) - Mean(reference.chosen));
    const double rejected = beta * (Mean(policy.rejected) - Mean(reference.rejected));
    loss.figures = {{"accuracy", pairs.accuracy},
                    {"ranked_right", ShareAbove(policy.chosen, policy.rejected)},
                    {"reward_chosen", chosen},
                    {"reward_rejected", rejected},
                    {"reward_margin", chosen - rejected}};
    return loss;
  }

 protected:
  bool needs_reference() const override { return true; }

 private:
  PreferenceObjective Objective() const {
    if (objective == "sigmoid") return PreferenceObjective::kSigmoid;
    if (objective == "robust") return PreferenceObjective::kRobust;
    if (objective == "hinge") return PreferenceObjective::kHinge;
    return objective == "ipo" ? PreferenceObjective::kIpo : PreferenceObjective::kIpoMean;
  }
};

class Orpo final : public Preference {
 public:
  double lambda = 0.1;

  void Fields(FieldVisitor& v) override {
    Preference::Fields(v);
    v.Field("lambda", lambda, "weight of the odds ratio beside the likelihood", Range::AtLeast(0));
  }
  BatchLoss Loss(const Examples& examples, const Values& log_p, const Values&) const override {
    const Sides policy = SplitSides(log_p);
    const Lengths lengths(examples);
    BatchLoss loss = FromPairs(
        OddsRatio(policy.chosen, policy.rejected, lengths.chosen, lengths.rejected, lambda));
    loss.figures = {{"ranked_right", ShareAbove(policy.chosen, policy.rejected)}};
    return loss;
  }
};

class SimPo final : public Preference {
 public:
  double beta = 2, gamma = 1;

  void Fields(FieldVisitor& v) override {
    Preference::Fields(v);
    v.Field("beta", beta, "scale of mean log-probabilities", Range::Positive());
    v.Field("gamma", gamma, "margin by which chosen answers are to lead", Range::AtLeast(0));
  }
  BatchLoss Loss(const Examples& examples, const Values& log_p, const Values&) const override {
    const Sides policy = SplitSides(log_p);
    const Lengths lengths(examples);
    BatchLoss loss = FromPairs(SimplePreference(policy.chosen, policy.rejected, lengths.chosen,
                                                lengths.rejected, beta, gamma));
    loss.figures = {{"ranked_right", ShareAbove(policy.chosen, policy.rejected)}};
    return loss;
  }
};

class KtoTraining final : public Preference {
 public:
  double beta = 0.1, desirable_weight = 1, undesirable_weight = 1;

  void Fields(FieldVisitor& v) override {
    Preference::Fields(v);
    v.Field("beta", beta, "how strongly the start model holds", Range::Positive());
    v.Field("desirable_weight", desirable_weight, "of answers whose label is true",
            Range::AtLeast(0));
    v.Field("undesirable_weight", undesirable_weight, "of answers whose label is false",
            Range::AtLeast(0));
  }
  void Check() const override {
    Preference::Check();
    if (batch < 2) {
      throw ConfigProblem("batch",
                          "needs two examples: the divergence is of answers to others' "
                          "prompts");
    }
  }
  BatchLoss Loss(const Examples& examples, const Values& log_p,
                 const Values& mismatched) const override {
    Values kl(mismatched.size());
    for (size_t i = 0; i < kl.size(); ++i) kl[i] = mismatched[i] - examples.mismatched_reference[i];
    const VerdictLoss verdicts = Kto(log_p, examples.reference, examples.label, kl,
                                     {.beta = beta,
                                      .desirable_weight = desirable_weight,
                                      .undesirable_weight = undesirable_weight});
    double reward[2] = {0, 0}, count[2] = {0, 0};
    for (size_t i = 0; i < log_p.size(); ++i) {
      reward[examples.label[i]] += beta * (log_p[i] - examples.reference[i]);
      ++count[examples.label[i]];
    }
    const double good = count[1] > 0 ? reward[1] / count[1] : 0;
    const double bad = count[0] > 0 ? reward[0] / count[0] : 0;
    return {.loss = verdicts.loss,
            .d_log_p = verdicts.d_policy,
            .figures = {{"reward_desirable", good},
                        {"reward_undesirable", bad},
                        {"reward_margin", good - bad},
                        {"mismatched_kl", verdicts.z}}};
  }

 protected:
  bool needs_reference() const override { return true; }
  bool needs_mismatched() const override { return true; }
  ExampleKind Kind() const override { return ExampleKind::kVerdict; }
};

// ---- Learner

class PreferenceLearner final : public OfflineLearner {
 public:
  PreferenceLearner(const Preference& config, const Replica& replica)
      : OfflineLearner(config, replica), config_(config) {}

 protected:
  void Improve(const Examples& examples, weft::Ports& ports) override {
    const int64_t tokens = config_.micro_batch_tokens;
    Values mismatched;
    if (config_.wants_mismatched()) {
      mismatched = SequenceLogProbabilities(context(), model(), Mismatched(examples), tokens);
    }
    // The loss needs every sequence's log-probability before any has a gradient: what fits in one
    // micro-batch is run once, the rest twice.
    int64_t runs = 0;
    ForMicroBatches(examples, tokens, [&](int64_t, int64_t) { ++runs; });
    BatchLoss loss;
    if (runs > 1) {
      loss = config_.Loss(examples, SequenceLogProbabilities(context(), model(), examples, tokens),
                          mismatched);
    }
    ForMicroBatches(examples, tokens, [&](int64_t begin, int64_t end) {
      const LanguageBatch batch = BatchOf(examples, begin, end);
      TransformerTrace trace;
      Tensor rows;
      const std::vector<float> log_p = LogProbabilities(batch, &trace, &rows);
      if (runs == 1) loss = config_.Loss(examples, Sums(examples, log_p), mismatched);
      Values d_log_p;
      for (int64_t s = begin; s < end; ++s) {
        d_log_p.insert(d_log_p.end(), static_cast<size_t>(examples.LearntTokens(s)),
                       loss.d_log_p[static_cast<size_t>(s)]);
      }
      AddGradient(batch, trace, rows, d_log_p);
    });
    if (!std::isfinite(loss.loss)) throw Error(ErrorCode::kDiverged, "the loss is not finite");
    ports.Log("loss", loss.loss);
    for (const auto& [name, value] : loss.figures) ports.Log(name, value);
  }

 private:
  static Values Sums(const Examples& examples, const std::vector<float>& log_p) {
    Values sums;
    size_t next = 0;
    for (int64_t s = 0; s < examples.sequences.count(); ++s) {
      double sum = 0;
      for (int64_t t = 0; t < examples.LearntTokens(s); ++t) sum += log_p[next++];
      sums.push_back(sum);
    }
    return sums;
  }

  const Preference& config_;
};

// ---- Build

std::unique_ptr<OfflineLearner> Preference::MakeLearner(const Replica& replica) const {
  return std::make_unique<PreferenceLearner>(*this, replica);
}

WEFT_REGISTER_LANGUAGE_METHOD(Dpo, "dpo",
                              "direct preference optimisation on pairs: sigmoid, cDPO, robust, "
                              "hinge, IPO");
WEFT_REGISTER_LANGUAGE_METHOD(KtoTraining, "kto",
                              "Kahneman-Tversky optimisation on answers with a verdict");
WEFT_REGISTER_LANGUAGE_METHOD(Orpo, "orpo",
                              "odds ratio preference optimisation on pairs, without a reference");
WEFT_REGISTER_LANGUAGE_METHOD(SimPo, "simpo",
                              "simple preference optimisation on pairs, without a reference");

}  // namespace
}  // namespace weft
